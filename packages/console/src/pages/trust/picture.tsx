import { useContext } from 'preact/hooks';
import { Time } from '../../parts/time.tsx';
import { Openable } from '../../shell/openable.ts';
import { linkTo } from '../../shell/place.ts';
import { nearness } from '../calendar/nearness.ts';
import { allResting, type Ending, keyOf, restingOn } from './resting.ts';

type Props = { readonly endings: readonly Ending[]; readonly chosen: Ending | undefined; readonly choose: (key: string) => void };

/** Height of a row in the unit of the drawing; the style sheet gives rows the same. */
const ROW = 10;

/** Two lists and lines between them. The lines say nothing that the sentence below does not. */
export function Picture({ endings, chosen, choose }: Props) {
  const resting = allResting(endings);
  const lost = new Set(chosen === undefined ? [] : restingOn(chosen).map(({ key }) => key));
  const openable = useContext(Openable);
  return (
    <div class="trust">
      <ul aria-label="What trust rests on">
        {endings.map((ending) => (
          <li key={keyOf(ending)}>
            <button type="button" aria-pressed={ending === chosen} onClick={() => choose(keyOf(ending))}>
              <span class="fine">{ending.kind.replaceAll('-', ' ')}</span> {ending.name} <Left at={ending.endsAt} />
            </button>
          </li>
        ))}
      </ul>
      <Lines endings={endings} order={resting.map(({ key }) => key)} chosen={chosen} />
      <ul aria-label="What rests on it">
        {resting.map(({ key, page, name }) => (
          <li key={key} class={lost.has(key) ? 'lost' : ''}>
            <span class="fine">{page === 'credentials' ? 'credential' : 'question'}</span>{' '}
            {openable.includes(page) ? <a href={linkTo(page, name)}>{name}</a> : name}
            {lost.has(key) && <strong> fails</strong>}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The word says what the colour does. */
function Left({ at }: { readonly at: string }) {
  const { word, tone } = nearness(new Date(at), new Date());
  return (
    <>
      <span class={`badge ${tone}`}>{word}</span> <Time at={at} />
    </>
  );
}

type LineProps = Pick<Props, 'endings' | 'chosen'> & { readonly order: readonly string[] };

function Lines({ endings, order, chosen }: LineProps) {
  const height = Math.max(endings.length, order.length) * ROW;
  const middle = (row: number) => row * ROW + ROW / 2;
  return (
    <svg aria-hidden="true" viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" height={`${height * 0.4}rem`}>
      {endings.flatMap((ending, row) =>
        restingOn(ending).map(({ key }) => {
          const [from, to] = [middle(row), middle(order.indexOf(key))];
          return (
            <path
              key={`${keyOf(ending)} ${key}`}
              class={ending === chosen ? 'chosen' : ''}
              d={`M0 ${from}C50 ${from} 50 ${to} 100 ${to}`}
            />
          );
        }),
      )}
    </svg>
  );
}
