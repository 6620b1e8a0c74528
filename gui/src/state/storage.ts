/** What is kept from one visit to the next. In a sandboxed frame any access to storage throws: then nothing is. */

function local(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

export function readStored(key: string, storage = local()): string | null {
  try {
    return storage?.getItem(key) ?? null;
  } catch {
    return null;
  }
}

export function store(key: string, value: string, storage = local()): void {
  try {
    storage?.setItem(key, value);
  } catch {
    // Full or forbidden: the page works without.
  }
}
