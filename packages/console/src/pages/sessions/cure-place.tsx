import { useContext } from 'preact/hooks';
import { Openable } from '../../shell/openable.ts';
import { linkTo } from '../../shell/place.ts';
import type { Cure } from './cures.ts';
import type { SessionRecord } from './session-record.ts';

type Props = { readonly session: SessionRecord; readonly cure: Omit<Cure, 'what'> };

export function CurePlace({ session, cure: { at, page } }: Props) {
  const failed = session.deliveries?.find(({ result }) => result === 'failed');
  return (
    <>
      {at !== undefined &&
        session.configurationIds.map((id) => (
          <span key={id} class="place">
            {at === 'anchors' ? 'Trust anchors of ' : ''}
            <Question id={id} />
          </span>
        ))}
      {page?.section.includes('webhook') === true && failed?.detail !== undefined && (
        <span class="place">The webhook of this session: {failed.detail}</span>
      )}
      {page !== undefined && (
        <span class="place">
          docs/reference/{page.file}.md, “{page.section}”
        </span>
      )}
    </>
  );
}

function Question({ id }: { readonly id: string }) {
  if (useContext(Openable).includes('questions')) return <a href={linkTo('questions', id)}>{id}</a>;
  return (
    <>
      presentation configuration <code>{id}</code>
    </>
  );
}
