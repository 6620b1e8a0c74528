/** The page without a profile: why there is none, and a way to get one. */
import { DropTarget, FileButton } from "./open.tsx";
import { Nothing, Problem } from "./problem.tsx";

interface WelcomeProps {
  problem: Error | null;
  again: (() => void) | null;
  open: (file: File) => void;
}

export function Welcome({ problem, again, open }: WelcomeProps) {
  const choose = (
    <FileButton open={open} class="btn">
      {problem ? "Load another profile" : "Select a profile (.json)"}
    </FileButton>
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
