import { Phone } from '../phone/phone.tsx';
import { IssuerColumn } from './issuer-column.tsx';
import { Lessons } from './lessons.tsx';
import { Play } from './play.ts';
import { useFresh } from './use-fresh.ts';
import { VerifierColumn } from './verifier-column.tsx';

export { Play };

/** The three who take part, side by side. */
export function Game({ play: game }: { readonly play: Play }) {
  const beginning = useFresh<HTMLDivElement>(game, 'game');
  return (
    <>
      <Lessons play={game} />
      <div class="playground" ref={beginning}>
        <IssuerColumn play={game} />
        <Phone />
        <VerifierColumn play={game} />
      </div>
    </>
  );
}
