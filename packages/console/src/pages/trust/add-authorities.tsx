import { useState } from 'preact/hooks';
import { Problem } from '../../parts/problem.tsx';
import type { Identity } from '../../shell/identities.ts';
import { AddTenant } from './add-tenant.tsx';
import type { Anchor } from './anchors.ts';
import { CertificateForm } from './certificate-form.tsx';
import { issuing } from './key-chain.ts';
import type { CertificatePurpose } from './read-certificates.ts';
import { useKeyChains } from './use-key-chains.ts';

type Props = { readonly identity: Identity; readonly add: (anchors: readonly Anchor[]) => void; readonly verb: 'Trust' | 'Gather' };

const SOURCES = {
  certificate: 'certificates, from a file or pasted',
  list: 'whoever stands on a trust list',
  tenant: 'another tenant of this service',
  own: 'one own key chain',
} as const;
type Source = keyof typeof SOURCES;
const MAX_SIGNERS = 20;

/** Every kind of trust that a question can have, but that in all own authorities. */
export function AddAuthorities({ identity, add, verb }: Props) {
  const [source, setSource] = useState<Source>('certificate');
  return (
    <div class="field">
      <label>
        {verb} also
        <select value={source} onChange={(event) => setSource(event.currentTarget.value as Source)}>
          {Object.entries(SOURCES).map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
      </label>
      {source === 'certificate' && <AddCertificates add={add} verb={verb} />}
      {source === 'list' && <AddList add={add} verb={verb} />}
      {source === 'tenant' && <AddTenant identity={identity} add={add} verb={verb} />}
      {source === 'own' && <AddOwn identity={identity} add={add} verb={verb} />}
    </div>
  );
}

function AddCertificates({ add, verb }: Omit<Props, 'identity'>) {
  const isPin = (form: FormData) => form.get('as') === 'pin';
  return (
    <CertificateForm
      label="Certificates"
      button={`${verb} it`}
      wanted={(form): CertificatePurpose => (form.get('as') === 'authority' ? 'authority' : 'issuer')}
      take={(found, form) => {
        add(found.map(({ pem: certificate }) => ({ certificate, ...(isPin(form) && { pin: true }) })));
        return undefined;
      }}
    >
      <label>
        They are of
        <select name="as">
          <option value="authority">authorities (CA): whatever they certify for it is trusted</option>
          <option value="issuer">issuers themselves, who bring no authority</option>
          <option value="pin">issuers that call themselves an authority: only what they sign (pin)</option>
        </select>
      </label>
    </CertificateForm>
  );
}

function AddList({ add, verb }: Omit<Props, 'identity'>) {
  return (
    <CertificateForm
      label="Who signs the list"
      button={`${verb} the list`}
      wanted={() => 'signer'}
      isOptional
      take={(found, form) => {
        if (found.length > MAX_SIGNERS) return `A list has at most ${MAX_SIGNERS} signers.`;
        const isFollowed = form.get('follow') === 'on';
        const signedBy = found.map(({ pem }) => pem);
        add([
          { trustList: String(form.get('trustList')).trim(), ...(signedBy.length > 0 && { signedBy }), ...(isFollowed && { follow: {} }) },
        ]);
        return undefined;
      }}
    >
      <label>
        Address of the list
        <input name="trustList" type="url" required placeholder="https://lists.example/attestations.jwt" />
      </label>
      <label>
        <input type="checkbox" name="follow" />
        It is a list of lists: those that it points to count
      </label>
      <p class="fine">
        The service fetches it (ETSI TS 119 602, or TS 119 612 in XML) and takes nobody from it unless one of these signed it. Of a list of
        this service the signer is known, so none has to be given.
      </p>
    </CertificateForm>
  );
}

function AddOwn({ identity, add, verb }: Props) {
  const { chains, fault } = useKeyChains(identity);
  if (fault !== undefined) return <Problem fault={fault} />;
  if (chains === undefined) return <p aria-busy="true">Reading the key chains</p>;
  const own = issuing(chains);
  if (own.length === 0) return <p class="empty">No key chain of this tenant issues under an authority of its own.</p>;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    add([{ keyChainId: String(new FormData(event.currentTarget as HTMLFormElement).get('chain')) }]);
  };
  return (
    <form class="adders" onSubmit={submit}>
      <label>
        Which key chain
        <select name="chain">
          {own.map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">{verb} it</button>
    </form>
  );
}
