/** The text of a whole profile to its parts. */
import { NotAProfile, upgrade, type Parts } from "../format/upgrade.ts";
import { SourceError } from "./source.ts";

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
