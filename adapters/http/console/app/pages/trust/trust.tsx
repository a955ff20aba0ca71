import { useState } from 'preact/hooks';
import { Problem } from '../../parts/problem.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { PageProps } from '../../shell/pages.ts';
import { Authorities } from './authorities.tsx';
import { Picture } from './picture.tsx';
import { type Ending, keyOf, restingOn } from './resting.ts';

/** The interface gives so many at once; a tenant with more looks at its calendar. */
const MOST = 200;

/** What credentials and questions rest on, and which of them fail when one of it ends. */
export default function Trust({ identity }: PageProps) {
  const { value, fault } = useAsked<readonly Ending[]>(identity, `/trust/forecast?limit=${MOST}`);
  const [chosen, setChosen] = useState<string>();
  if (fault !== undefined) return <Problem fault={fault} />;
  if (value === undefined) return <p aria-busy="true">Reading what trust rests on</p>;
  const ending = value.find((one) => keyOf(one) === chosen);
  return (
    <>
      <h1>Trust</h1>
      <p>
        On the left stands what trust rests on, on the right what rests on it. Choose one on the left to see
        what fails when it ends.
      </p>
      {value.length === 0 ? (
        <p class="empty">
          Keys, certificates, lists and authorities stand here once this tenant issues a credential, or asks a
          question and says whom it trusts.
        </p>
      ) : (
        <Picture
          endings={value}
          chosen={ending}
          choose={(key) => setChosen(key === chosen ? undefined : key)}
        />
      )}
      <p role="status">{ending !== undefined && sentenceOf(ending)}</p>
      {value.length === MOST && <p class="fine">The first {MOST} of them; all stand in the calendar.</p>}
      <Authorities identity={identity} />
    </>
  );
}

function sentenceOf(ending: Ending): string {
  const lost = restingOn(ending);
  const what = lost.length === 0 ? 'Nothing fails' : `${lost.map(({ name }) => name).join(', ')} fail`;
  const help = ending.renews ? 'It renews itself, as long as nothing is in the way.' : ending.advice;
  return `If ${ending.name} ends: ${what}. ${help}`;
}
