import { useEffect, useRef } from 'preact/hooks';
import { countsOf, nameOfStatus, type ReadList, statusAt } from './token.ts';

/** Red, green and blue per status; what is valid stays in the background. */
const COLOURS: readonly (readonly [number, number, number])[] = [
  [214, 219, 227],
  [185, 28, 28],
  [217, 119, 6],
];
const OTHER = [29, 78, 216] as const;
/** Beyond it, a picture has more points than screens have. */
const MOST = 2_000_000;

type Props = { readonly list: ReadList; readonly marked: number | undefined };

/** A point for each entry, line by line from the first one; beside it the same in words. */
export function Bitmap({ list, marked }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = Math.min(list.entries, MOST);
  const width = Math.ceil(Math.sqrt(shown));
  const height = Math.ceil(shown / width);
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (context === null || context === undefined) return;
    const image = context.createImageData(width, height);
    for (let index = 0; index < shown; index++) {
      const [red, green, blue] = COLOURS[statusAt(list, index) ?? 0] ?? OTHER;
      image.data.set([red, green, blue, 255], index * 4);
    }
    context.putImageData(image, 0, 0);
  }, [list, shown, width, height]);
  const words = [...countsOf(list)]
    .sort(([status], [otherStatus]) => status - otherStatus)
    .map(([status, count]) => `${count.toLocaleString('en')} ${nameOfStatus(status)}`)
    .join(', ');
  return (
    <figure class="bitmap">
      <div class="sheet">
        <canvas ref={canvas} width={width} height={height} role="img" aria-label={`A point for each entry: ${words}`} />
        {marked !== undefined && marked >= 0 && marked < shown && (
          <Here key={marked} across={((marked % width) + 0.5) / width} down={(Math.floor(marked / width) + 0.5) / height} />
        )}
      </div>
      <figcaption>
        {list.entries.toLocaleString('en')} entries: {words}.{' '}
        <span class="fine">
          Red is revoked, orange suspended, grey valid or given to nobody: the list does not tell these apart.
          {shown < list.entries && ` The first ${shown.toLocaleString('en')} are drawn.`}
        </span>
      </figcaption>
    </figure>
  );
}

/** A ring around one point, which comes into view. Both are shares of the picture. */
function Here({ across, down }: { readonly across: number; readonly down: number }) {
  const ring = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    ring.current?.scrollIntoView({ block: 'center' });
  }, []);
  const style = { left: `${across * 100}%`, top: `${down * 100}%` };
  return <span ref={ring} class="here" aria-hidden="true" style={style} />;
}
