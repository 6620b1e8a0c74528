/**
 * Parsing beside the page: a worker made of the page's own script, so that a large profile that is dropped on
 * a page without a server does not freeze it. Where none can be had (no script text, a frame that may not),
 * the page does it itself.
 */
import type { Parts } from "../format/upgrade.ts";
import { parse } from "./parse.ts";
import { SourceError } from "./source.ts";

interface Job {
  text: string;
  name: string;
}

type Result = { parts: Parts } | { message: string; hint: string };

interface TypePolicy {
  createScriptURL(address: string): string;
}

interface TypePolicies {
  createPolicy(name: string, rules: TypePolicy): TypePolicy;
}

/** While the script runs it can be asked for its own text; not later. */
const script = typeof document === "undefined" ? "" : (document.currentScript?.textContent ?? "");

/** The one policy of this page: what it makes is a worker of our own text. */
let policy: TypePolicy | null = null;

function workerAddress(text: string): string {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const types = (globalThis as { trustedTypes?: TypePolicies }).trustedTypes;
  policy ??= types?.createPolicy("scalene", { createScriptURL: (of) => of }) ?? null;
  return policy ? policy.createScriptURL(address) : address;
}

function ask(worker: Worker, job: Job): Promise<Result> {
  return new Promise((resolve, reject) => {
    worker.onmessage = (event: MessageEvent<Result>) => {
      resolve(event.data);
    };
    worker.onerror = () => {
      reject(new Error("the worker failed"));
    };
    worker.postMessage(job);
  });
}

export async function parseBeside(text: string, name: string): Promise<Parts> {
  if (!script) return parse(text, name);
  let result: Result;
  try {
    const worker = new Worker(workerAddress(script));
    try {
      result = await ask(worker, { text, name });
    } finally {
      worker.terminate();
    }
  } catch {
    return parse(text, name);
  }
  if ("parts" in result) return result.parts;
  throw new SourceError(result.message, result.hint);
}

function work({ text, name }: Job): Result {
  try {
    return { parts: parse(text, name) };
  } catch (error) {
    const { message, hint } = error instanceof SourceError ? error : new SourceError(String(error));
    return { message, hint };
  }
}

/** In the worker, which has no document: one profile, then it is ended. */
export function answer(): void {
  addEventListener("message", (event: MessageEvent<Job>) => {
    postMessage(work(event.data));
  });
}
