/** The page without a profile: why there is none, and a way to get one. */
import { useRef } from "preact/hooks";
import { DropTarget } from "./open.tsx";
import { Nothing, Problem } from "./problem.tsx";

interface WelcomeProps {
  problem: Error | null;
  again: (() => void) | null;
  open: (file: File) => void;
}

export function Welcome({ problem, again, open }: WelcomeProps) {
  const input = useRef<HTMLInputElement>(null);
  const choose = (
    <>
      <button class="btn" onClick={() => input.current?.click()}>
        {problem ? "Load another profile" : "Select a profile (.json)"}
      </button>
      <input
        ref={input}
        type="file"
        accept=".json,application/json"
        class="offscreen"
        tabIndex={-1}
        aria-label="Profile to load"
        onChange={() => {
          const file = input.current?.files?.[0];
          if (file) open(file);
        }}
      />
    </>
  );
  return (
    <div class="welcome">
      <h1 class="brand">Scalene</h1>
      {problem ? (
        <Problem error={problem}>
          {again && (
            <button class="btn" onClick={again}>
              Try again
            </button>
          )}
          {choose}
        </Problem>
      ) : (
        <Nothing title="No profile yet">
          <p>Drop a profile here, or choose one. It stays in this browser.</p>
          <p class="act">{choose}</p>
        </Nothing>
      )}
      <DropTarget open={open} />
    </div>
  );
}
