/** A profile that was dropped on a page without a server: read as a whole, and split here. */
import { NotAProfile, upgrade, type Parts } from "../format/upgrade.ts";
import { SourceError, type Source } from "./source.ts";

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
    return new RawSource(parse(await file.text(), name), file);
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

export function parse(text: string, name: string): Parts {
  let document: unknown;
  try {
    document = JSON.parse(text) as unknown;
  } catch (error) {
    throw new SourceError(...whereBroken(String(error), text, name));
  }
  try {
    return upgrade(document, name);
  } catch (error) {
    if (error instanceof NotAProfile) throw new SourceError(error.message);
    throw error;
  }
}

/** What a parser says of a broken document, for people: where, and what may be the reason. */
function whereBroken(said: string, text: string, name: string): [string, string] {
  const position = Number(/position (\d+)/.exec(said)?.[1] ?? Number.NaN);
  const atEnd = /end of (JSON|data)|unterminated|EOF/i.test(said) || position >= text.length;
  if (text && atEnd) {
    const bytes = new TextEncoder().encode(text).length.toLocaleString("en-US");
    return [
      `${name} ends in the middle, at byte ${bytes}`,
      "The run may still be writing it, or the disk was full. Nothing of it is shown, since sums would be wrong.",
    ];
  }
  const where = Number.isNaN(position) ? "" : `, from character ${position.toLocaleString("en-US")} on`;
  return [`${name} is not JSON${where}`, "A profile is the .json file that scalene run writes."];
}
