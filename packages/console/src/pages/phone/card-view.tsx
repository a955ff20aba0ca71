import type { Json, StoredCredential } from '../../../../wallet/src/core/index.ts';

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

/** A card in the colours of its issuer; opened, what it says and what it is made of. */
export function CardView({ card }: { readonly card: StoredCredential }) {
  const { look, issuer, validity, format, claims, labels, disclosable } = card;
  return (
    <details class="wallet-card">
      <summary style={{ backgroundColor: look.backgroundColor, color: look.textColor }}>
        <strong>{look.name}</strong>
        <span>{issuer.name}</span>
      </summary>
      <dl>
        {leaves(claims).map(([path, value]) => (
          <div key={path.join('.')}>
            <dt>{nameOf(path, labels)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p class="fine">
        {format === 'mso_mdoc' ? 'ISO mdoc' : 'SD-JWT VC'}, signed by {card.signer?.subject ?? 'nobody known'}
        {validity.until !== undefined && `, good until ${DAY.format(new Date(validity.until))}`}. {disclosable.length} of its claims can be
        shown one by one.
        {card.status !== undefined && ` Entry ${card.status.index} of the issuer’s status list.`}
      </p>
    </details>
  );
}

type Leaf = readonly [readonly string[], string];
const TECHNICAL = new Set(['iss', 'iat', 'nbf', 'exp', 'cnf', 'vct', 'status', '_sd', '_sd_alg']);

function leaves(claims: { readonly [name: string]: Json }, above: readonly string[] = []): Leaf[] {
  return Object.entries(claims).flatMap(([name, value]): Leaf[] => {
    if (above.length === 0 && TECHNICAL.has(name)) return [];
    const path = [...above, name];
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return leaves(value, path);
    return [[path, typeof value === 'string' ? value : JSON.stringify(value)]];
  });
}

export function nameOf(path: readonly (string | number | null)[], labels: StoredCredential['labels']): string {
  const found = labels.find((label) => label.path.join('\n') === path.join('\n'));
  return found?.name ?? String(path.at(-1) ?? '').replaceAll('_', ' ');
}
