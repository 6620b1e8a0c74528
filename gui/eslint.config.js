// Beside the usual: what the page's content policy and Trusted Types forbid is an error here already.
// Text of a profile is data: it reaches the document as text, by Preact, and in no other way.
import { defineConfig } from "eslint/config";
import noUnsanitized from "eslint-plugin-no-unsanitized";
import tseslint from "typescript-eslint";

const banned = [
  ["JSXAttribute[name.name='dangerouslySetInnerHTML']", "Markup never comes from data."],
  ["JSXAttribute[name.name='style'][value.type='Literal']", "The content policy forbids style strings: use an object."],
  [
    "JSXAttribute[name.name='style'] > JSXExpressionContainer > TemplateLiteral",
    "The content policy forbids style strings: use an object.",
  ],
  [
    "JSXOpeningElement[name.name!='use'] > JSXAttribute[name.name='href']:not([value.expression.callee.name='link'])",
    "An address goes through link(), which knows the schemes that are safe.",
  ],
  ["CallExpression[callee.property.name='setAttribute'][arguments.0.value='style']", "Set style properties instead."],
  ["MemberExpression[property.name='cssText']", "Set style properties instead."],
  ["MemberExpression[property.name=/^(innerHTML|outerHTML|srcdoc)$/]", "Markup never comes from data."],
  [
    "MemberExpression[property.name=/^(insertAdjacentHTML|createContextualFragment)$/]",
    "Markup never comes from data.",
  ],
  ["MemberExpression[object.name='document'][property.name=/^write(ln)?$/]", "Markup never comes from data."],
];

export default defineConfig(
  { ignores: ["node_modules"] },
  {
    files: ["src/**/*.{ts,tsx}", "test/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, noUnsanitized.configs.recommended],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "no-eval": "error",
      "no-new-func": "error",
      "no-script-url": "error",
      "no-implied-eval": "off",
      "@typescript-eslint/no-implied-eval": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // An index that a loop bounds is in range; the compiler cannot know.
      "@typescript-eslint/no-non-null-assertion": "off",
      // It takes what was so before an await for what is so after it.
      "@typescript-eslint/no-unnecessary-condition": "off",
      "@typescript-eslint/no-meaningless-void-operator": "off",
      "no-restricted-syntax": ["error", ...banned.map(([selector, message]) => ({ selector, message }))],
    },
  },
  {
    // The model is values and functions: it runs in a worker and in tests, where there is no document.
    files: ["src/model/**", "src/format/**"],
    rules: {
      "no-restricted-globals": ["error", "document", "window", "localStorage", "sessionStorage", "fetch"],
    },
  },
  {
    // node:test's functions return promises that its runner awaits.
    files: ["test/**"],
    rules: { "@typescript-eslint/no-floating-promises": "off", "no-script-url": "off" },
  },
);
