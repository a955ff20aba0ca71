import { handset } from '../phone/handset.ts';
import type { Play, PlayStep } from './play.ts';

type Lesson = { readonly text: string; readonly isDone: (play: Play) => boolean };

const refusedFor =
  (isMeant: (turn: PlayStep) => boolean) =>
  ({ requests }: Play) =>
    requests.value.some((turn) => turn.status === 'failed' && isMeant(turn));

const LESSONS: readonly Lesson[] = [
  { text: 'Collect the diploma', isDone: () => handset.cards.value.length > 0 },
  { text: 'Show it to the employer', isDone: ({ requests }) => requests.value.some(({ status }) => status === 'completed') },
  {
    text: 'Cheat: choose a way under “Misbehave”',
    isDone: (play) =>
      refusedFor(({ misbehaviour }) => misbehaviour !== undefined)(play) ||
      play.requests.value.some(({ misbehaviour }) => misbehaviour === 'replay'),
  },
  { text: 'Revoke the diploma', isDone: ({ offers }) => offers.value.some(({ isRevoked }) => isRevoked) },
  { text: 'Show it again: it is refused', isDone: refusedFor(({ reason = '' }) => reason.includes('revoked')) },
];

export function Lessons({ play }: { readonly play: Play }) {
  const next = LESSONS.findIndex(({ isDone }) => !isDone(play));
  return (
    <ol class="lessons" aria-label="What to try">
      {LESSONS.map(({ text, isDone }, index) => {
        const done = isDone(play);
        return (
          <li key={text} class={done ? 'done' : ''} aria-current={index === next ? 'step' : undefined}>
            <span aria-hidden="true">{done ? '✓' : index + 1}</span> {text}
            {done && <span class="hidden"> (done)</span>}
          </li>
        );
      })}
    </ol>
  );
}
