/** Bars of the tables. Their pieces come from the model; here they get their looks. */
import { barPieces } from "../model/bars.ts";

const timeLooks = ["py", "nat", "sys"];
const memoryLooks = ["mpy", "mnat"];

interface Shape {
  parts: number[];
  half: number;
  scale: number;
  width: number;
  looks: string[];
}

function Bar({ parts, half, scale, width, looks }: Shape) {
  return (
    <svg class="bar" width={width} height={12} aria-hidden="true">
      {barPieces(parts, half, scale, width).map((piece, index) =>
        piece.part < 0 ? (
          <rect key={index} class="noise" x={piece.x} y={0.5} width={piece.width} height={11} />
        ) : (
          <rect
            key={index}
            class={`${looks[piece.part]!}${piece.faded ? " fade" : ""}`}
            fill={looks[piece.part] === "sys" ? "url(#hatch)" : undefined}
            x={piece.x}
            width={piece.width}
            height={12}
          />
        ),
      )}
    </svg>
  );
}

interface TimeBarProps {
  python: number;
  native: number;
  system: number;
  half: number;
  scale: number;
}

export function TimeBar({ python, native, system, half, scale }: TimeBarProps) {
  return <Bar parts={[python, native, system]} half={half} scale={scale} width={96} looks={timeLooks} />;
}

interface MemoryBarProps {
  mb: number;
  pythonFraction: number;
  scale: number;
  width?: number;
}

/** Nothing under three quarters of a pixel: the number is enough. */
export function MemoryBar({ mb, pythonFraction, scale, width = 32 }: MemoryBarProps) {
  const drawn = (mb / scale) * width >= 0.75;
  const parts = drawn ? [mb * pythonFraction, mb * (1 - pythonFraction)] : [];
  return <Bar parts={parts} half={0} scale={scale} width={width} looks={memoryLooks} />;
}

/** One amount in one look. */
export function PlainBar({
  value,
  scale,
  look,
  width = 96,
}: {
  value: number;
  scale: number;
  look: string;
  width?: number;
}) {
  return <Bar parts={[value]} half={0} scale={scale} width={width} looks={[look]} />;
}
