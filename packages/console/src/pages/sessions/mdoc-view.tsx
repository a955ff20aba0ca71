import { presentedMdocs } from './mdoc-elements.ts';
import type { SessionRecord } from './session-record.ts';

export function MdocElements({ session }: { readonly session: Pick<SessionRecord, 'offer' | 'credentials'> }) {
  const mdocs = presentedMdocs(session);
  if (mdocs.length === 0) return null;
  return (
    <section class="card" aria-labelledby="elements">
      <h2 id="elements">Elements of mdocs</h2>
      {mdocs.map(({ id, docType, namespaces }, index) => (
        <details key={`${id} ${index}`} open={mdocs.length === 1}>
          <summary>
            {id} <code>{docType}</code>
          </summary>
          {namespaces.map(({ name, elements }) => (
            <figure key={name} class="json">
              <figcaption>{name}</figcaption>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it, too */}
              <pre tabIndex={0}>{elements.map((element) => `${JSON.stringify(element.name)}: ${element.notation}`).join(',\n')}</pre>
            </figure>
          ))}
        </details>
      ))}
      <p class="fine">
        In diagnostic notation (RFC 8949). The presentation itself is not kept: byte strings stand as base64url, dates as texts.
      </p>
    </section>
  );
}
