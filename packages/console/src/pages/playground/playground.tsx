import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { Problem } from '../../parts/problem.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { isPlaying } from '../../shell/playing.ts';
import { demonstrate } from './demonstration.ts';
import type * as Game from './game.tsx';

type Begun = { readonly play: Game.Play; readonly View: typeof Game.Game };

/** Stays while one looks at other pages. */
const begun = signal<Begun | undefined>(undefined);

/** A credential issued, shown, refused and revoked, with a phone that is a part of the page. */
export default function Playground({ identity }: PageProps) {
  return (
    <>
      <h1>Playground</h1>
      {begun.value === undefined ? <Beginning identity={identity} /> : <begun.value.View play={begun.value.play} />}
    </>
  );
}

/** The phone is most of what this page loads, and is fetched while one reads. */
const loadGame = () => import('./game.tsx');

function Beginning({ identity }: Pick<PageProps, 'identity'>) {
  const [done, setDone] = useState<readonly string[]>([]);
  const [fault, setFault] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => void loadGame(), []);
  const begin = async () => {
    setBusy(true);
    setFault(undefined);
    setDone([]);
    try {
      const demonstration = await demonstrate(identity, (step) => setDone((steps) => [...steps, step]));
      const { Game: View, Play } = await loadGame();
      isPlaying.value = true;
      begun.value = { play: new Play(demonstration), View };
    } catch (error) {
      setFault(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="beginning">
      <p>
        A university issues a diploma to a phone, an employer asks for it, and you are all three. The phone is made of other people’s code
        and keeps its keys in this window; it can also cheat, and you see how that ends.
      </p>
      <button type="button" aria-busy={isBusy} disabled={isBusy} onClick={begin}>
        Begin
      </button>
      <p class="fine">It makes two tenants, which are removed after a day with everything in them.</p>
      <ol aria-live="polite" class="steps">
        {done.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      {fault !== undefined && <Problem fault={fault} />}
    </div>
  );
}
