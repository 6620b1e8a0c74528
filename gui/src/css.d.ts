/** esbuild collects what is imported so into page.css. */
declare module "*.css";
