import { About } from '../../parts/about.tsx';
import { listAt } from '../../parts/json-paths.ts';
import { Problem } from '../../parts/problem.tsx';
import { say } from '../../parts/said.tsx';
import type { Draft } from '../../parts/use-draft.ts';
import { type Identity, identities } from '../../shell/identities.ts';
import { newAmong } from '../trust/anchors.ts';
import { issuing } from '../trust/key-chain.ts';
import { useKeyChains } from '../trust/use-key-chains.ts';
import type { Kind } from './question.ts';

type Props = { readonly draft: Draft; readonly kind: Kind };

/** A credential of another tenant is refused until that is trusted, too: the one goes with the other. */
export function TrustIssuer({ draft, kind }: Props) {
  const issuer = identities.value.find(({ tenantId, roles }) => tenantId === kind.issuer && roles.includes('issuance:manage'));
  if (kind.issuer === undefined || issuer === undefined) return null;
  return <Proposal key={issuer.clientId} draft={draft} kind={kind} issuer={issuer} />;
}

function Proposal({ draft, kind, issuer }: Props & { readonly issuer: Identity }) {
  const { chains, fault } = useKeyChains(issuer);
  if (fault !== undefined) return <Problem fault={fault} />;
  if (chains === undefined) return <p aria-busy="true">Reading whom to trust for it</p>;
  const theirs = issuing(chains)
    .filter(({ id }) => kind.keyChainId === undefined || id === kind.keyChainId)
    .map(({ rootCertificate: certificate }) => ({ certificate }));
  const anchors = listAt(draft.value, 'trustAnchors');
  const missing = newAmong(anchors, theirs);
  const name = kind.issuer;
  if (theirs.length === 0) return <p class="fine">{name} issues it, under no authority of its own: say below whom it trusts.</p>;
  if (missing.length === 0) return <p class="fine">{name} issues it, and its authority is trusted.</p>;
  const trust = () => {
    draft.change(['trustAnchors'], [...anchors, ...missing]);
    say(`The authority of ${name} is among those whom it trusts. Save the question.`);
  };
  return (
    <p>
      {name} issues it, and its authority is not among those whom the question trusts.{' '}
      <button type="button" class="quiet small" onClick={trust}>
        Trust the authority of {name}
        <About about={kind.title} />
      </button>
    </p>
  );
}
