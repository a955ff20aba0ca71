import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { About } from '../../parts/about.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Copy } from '../../parts/copy.tsx';
import { Qr } from '../../parts/qr.tsx';
import { Reachable } from '../../parts/reachable.tsx';
import { say } from '../../parts/said.tsx';
import { choose, type Identity } from '../../shell/identities.ts';
import { linkTo } from '../../shell/place.ts';
import type { Play, PlayStep } from './play.ts';
import { useFresh } from './use-fresh.ts';

type Props = {
  readonly turn: PlayStep;
  readonly play: Play;
  readonly who: Identity;
  readonly title: string;
  readonly children?: ComponentChildren;
};

/** One offer or request: its code while it is open, and what became of it. */
export function TurnView({ turn, play, who, title, children }: Props) {
  const [isBusy, setBusy] = useState(false);
  const place = useFresh<HTMLElement>(play, turn.id);
  const id = useId();
  const isOpen = turn.status === 'active' || turn.status === 'fetched';
  const scan = async () => {
    setBusy(true);
    await play.scan(turn);
    setBusy(false);
    document.getElementById('phone')?.scrollIntoView({ block: 'nearest' });
  };
  const become = () => {
    choose(who.clientId);
    say(`You are ${who.clientId} of ${who.tenantId} now. Choose at the top who you are.`);
  };
  return (
    <article class="card turn" ref={place} aria-labelledby={id}>
      <header>
        <h3 id={id}>{title}</h3>
        <Badge status={turn.isRevoked ? 'revoked' : turn.status} />
      </header>
      {isOpen && (
        <>
          <Qr text={turn.link} label={`QR code of ${title}`} />
          <button type="button" aria-busy={isBusy} disabled={isBusy} onClick={scan}>
            Open in the phone
            <About about={title} />
          </button>
          <Copy text={turn.link} label="Copy the link" about={title} />
          <Reachable link={turn.link} />
        </>
      )}
      {children}
      <a class="fine" href={linkTo('sessions', turn.id)} onClick={become}>
        Open the session
        <About about={title} />
      </a>
    </article>
  );
}
