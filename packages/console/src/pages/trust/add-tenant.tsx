import { useState } from 'preact/hooks';
import { Problem } from '../../parts/problem.tsx';
import { type Identity, identities } from '../../shell/identities.ts';
import type { Anchor } from './anchors.ts';
import { issuing } from './key-chain.ts';
import { useKeyChains } from './use-key-chains.ts';

type Props = { readonly identity: Identity; readonly add: (anchors: readonly Anchor[]) => void; readonly verb: string };

const READERS = ['issuance:manage', 'presentation:manage'];

/** The authorities of another tenant, read as the client of it that is logged in here, too. */
export function AddTenant({ identity, add, verb }: Props) {
  const others = identities.value.filter(
    ({ tenantId, roles }) => tenantId !== undefined && tenantId !== identity.tenantId && READERS.some((role) => roles.includes(role)),
  );
  const [chosen, setChosen] = useState(others[0]?.clientId);
  const other = others.find(({ clientId }) => clientId === chosen) ?? others[0];
  if (other === undefined)
    return (
      <p class="empty">
        Log in as a client of that tenant, too, with <em>Add</em> at the top: it needs <code>issuance:manage</code> or{' '}
        <code>presentation:manage</code> there.
      </p>
    );
  return (
    <>
      <label>
        Which tenant
        <select value={other.clientId} onChange={(event) => setChosen(event.currentTarget.value)}>
          {others.map(({ clientId, tenantId }) => (
            <option key={clientId} value={clientId}>
              {tenantId} · {clientId}
            </option>
          ))}
        </select>
      </label>
      <ChainsOf key={other.clientId} identity={other} add={add} verb={verb} />
    </>
  );
}

function ChainsOf({ identity, add, verb }: Props) {
  const { chains, fault } = useKeyChains(identity);
  if (fault !== undefined) return <Problem fault={fault} />;
  if (chains === undefined) return <p aria-busy="true">Reading its key chains</p>;
  const theirs = issuing(chains);
  if (theirs.length === 0) return <p class="empty">{identity.tenantId} has no authority of its own that issues.</p>;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const wanted = new FormData(event.currentTarget as HTMLFormElement).getAll('chain');
    add(theirs.filter(({ id }) => wanted.includes(id)).map(({ rootCertificate: certificate }) => ({ certificate })));
  };
  return (
    <form onSubmit={submit}>
      <fieldset>
        <legend>Authorities of {identity.tenantId}</legend>
        {theirs.map(({ id }) => (
          <label key={id}>
            <input type="checkbox" name="chain" value={id} defaultChecked />
            {id}
          </label>
        ))}
      </fieldset>
      <button type="submit">{verb} them</button>
    </form>
  );
}
