import { Copy } from '../../parts/copy.tsx';
import { Problem } from '../../parts/problem.tsx';
import type { Identity } from '../../shell/identities.ts';
import { derOfPem } from './read-certificates.ts';
import { useKeyChains } from './use-key-chains.ts';

export function Authorities({ identity }: { readonly identity: Identity }) {
  const { chains, fault } = useKeyChains(identity);
  if (fault !== undefined) return <Problem fault={fault} />;
  const own = (chains ?? []).flatMap(({ id, usages = [], rootCertificate: pem }) => (typeof pem === 'string' ? [{ id, usages, pem }] : []));
  const all = own.map(({ pem }) => pem).join('');
  return (
    <section aria-labelledby="authorities">
      <h2 id="authorities">To be trusted by others</h2>
      <p>
        Whoever is to accept what this tenant issues gets the certificate of its authority, and puts it into a question under{' '}
        <em>Whom it trusts</em>. It is the authority of a key chain that issues, such as <strong>signing</strong>; those of other key chains
        sign something else. Another tenant of this service is given it in the same way.
      </p>
      {own.length > 1 && (
        <p>
          <button type="button" class="quiet" onClick={() => save(all, 'authorities.pem', PEM)}>
            Download all {own.length} (PEM)
          </button>
        </p>
      )}
      <ul class="plain-list">
        {own.map(({ id, usages, pem }) => (
          <li key={id}>
            <strong>{id}</strong> <span class="fine">{usages.join(', ')}</span>{' '}
            <Copy text={pem} label={`Copy the certificate of ${id} (PEM)`} />{' '}
            <button type="button" class="quiet small" onClick={() => save(pem, `${id}.pem`, PEM)}>
              Download {id} as PEM
            </button>{' '}
            <button type="button" class="quiet small" onClick={() => save(derOfPem(pem) ?? '', `${id}.cer`, DER)}>
              Download {id} as DER
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** RFC 8555 section 9.1, and RFC 2585 section 4.1. */
const PEM = 'application/pem-certificate-chain';
const DER = 'application/pkix-cert';

function save(content: string | Uint8Array, name: string, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content as BlobPart], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
