/** The page's beginning: `render` puts a profile into an element; the script does it to #app by itself. */
import "./page.css";
import { h, render as mount } from "preact";
import type { Source } from "./source/source.ts";

export function render(element: Element, source: Source): void {
  mount(h("p", null, typeof source), element);
}
