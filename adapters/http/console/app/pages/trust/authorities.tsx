import { Copy } from '../../parts/copy.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { Identity } from '../../shell/identities.ts';

type KeyChain = {
  readonly id: string;
  readonly usages?: readonly string[];
  readonly rootCertificate?: string | null;
};

/** Own authorities, for whoever is to trust this tenant. */
export function Authorities({ identity }: { readonly identity: Identity }) {
  const { value, fault } = useAsked<readonly KeyChain[]>(identity, '/key-chain?limit=100');
  if (fault !== undefined) return <Problem fault={fault} />;
  const own = (value ?? []).filter(({ rootCertificate }) => typeof rootCertificate === 'string');
  return (
    <section aria-labelledby="authorities">
      <h2 id="authorities">To be trusted by others</h2>
      <p>
        Whoever is to accept what this tenant issues gets the certificate of its authority, and puts it into a
        question under <em>Whom to trust</em>. Another tenant of this service is given it in the same way.
      </p>
      <ul>
        {own.map(({ id, usages = [], rootCertificate }) => (
          <li key={id}>
            <strong>{id}</strong> <span class="fine">{usages.join(', ')}</span>{' '}
            <Copy text={rootCertificate ?? ''} label={`Copy the certificate of ${id} (PEM)`} />
          </li>
        ))}
      </ul>
    </section>
  );
}
