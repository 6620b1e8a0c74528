/** A profile that was dropped on a page without a server: read as a whole, and split here. */
import type { Parts } from "../format/upgrade.ts";
import { SourceError, type Source } from "./source.ts";
import { parseBeside } from "./worker.ts";

/** A text in a browser ends at 512 MB; the parsed document takes a few times as much. */
const LARGEST_BYTES = 400e6;

export class RawSource implements Source {
  private readonly parts: Parts;
  private readonly file: Blob;

  constructor(parts: Parts, file: Blob) {
    this.parts = parts;
    this.file = file;
  }

  static async read(file: Blob, name: string): Promise<RawSource> {
    if (file.size > LARGEST_BYTES)
      throw new SourceError(`${name} is too large for a page without a server.`, `Open it with: scalene view ${name}`);
    return new RawSource(await parseBeside(await file.text(), name), file);
  }

  get(part: string): Promise<unknown> {
    const [kind, id] = part.split("/");
    const whole = new Map<string, unknown>(Object.entries(this.parts));
    const found = kind === "file" ? this.parts.files[Number(id)] : whole.get(part);
    return found ? Promise.resolve(found) : Promise.reject(new SourceError(`There is no ${part} in this profile.`));
  }

  events(): void {
    return;
  }

  open(file: Blob, name: string): Promise<Source> {
    return RawSource.read(file, name);
  }

  download(): Promise<Blob> {
    return Promise.resolve(this.file);
  }
}
