/** A report in one file: the parts are in the page's own document, large ones deflated. */
import { RawSource } from "./raw.ts";
import { SourceError, type Source } from "./source.ts";

export class EmbeddedSource implements Source {
  private readonly root: ParentNode;

  constructor(root: ParentNode) {
    this.root = root;
  }

  async get(part: string): Promise<unknown> {
    const element = this.root.querySelector<HTMLScriptElement>(`script[data-part="${CSS.escape(part)}"]`);
    if (!element) throw new SourceError("This file was left out of the report, to keep it small.");
    const content = element.textContent;
    const text = element.dataset.encoding === "deflate" ? await inflate(content) : content;
    return JSON.parse(text) as unknown;
  }

  /** Nothing ever happens to a file that was written once. */
  events(): void {
    return;
  }

  open(file: Blob, name: string): Promise<Source> {
    return RawSource.read(file, name);
  }
}

async function inflate(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}
