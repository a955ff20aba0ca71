import { Builder } from '../../parts/builder.tsx';
import { Field } from '../../parts/field.tsx';
import { at, listAt, textAt } from '../../parts/json-paths.ts';
import { useAsked } from '../../parts/use-asked.ts';
import { type Draft, useDraft } from '../../parts/use-draft.ts';
import { WebhookFields } from '../../parts/webhook-fields.tsx';
import type { Identity } from '../../shell/identities.ts';
import { CardPreview } from './card-preview.tsx';
import { isMdoc } from './claims.ts';
import { ClaimsTable } from './claims-table.tsx';
import { ImportClaims } from './import-claims.tsx';
import { linkable } from './linkable.ts';
import { OfferIt } from './offer-it.tsx';

const BLANK = {
  id: '',
  config: { format: 'dc+sd-jwt', display: [{ name: '', locale: 'en', background_color: '#12355b', text_color: '#ffffff' }] },
  keyBinding: true,
  statusManagement: true,
};
const DERIVED = ['certId', 'cert', 'keyChain', 'tenant', 'createdAt', 'updatedAt', 'warnings'];
const FORMATS = { 'dc+sd-jwt': 'SD-JWT VC', mso_mdoc: 'ISO mdoc' };

/** One kind of credential: what it is, how it looks and what is in it. */
export function CredentialBuilder({ identity, id }: { readonly identity: Identity; readonly id: string }) {
  const draft = useDraft({ identity, page: 'credentials', path: '/issuer/credentials', id, blank: BLANK, derived: DERIVED });
  return (
    <Builder
      draft={draft}
      title={draft.isNew ? 'New credential' : id}
      list={{ page: 'credentials', title: 'Credentials' }}
      mayWrite
      actions={
        draft.isChanged ? (
          <span class="fine">Save it before you offer it.</span>
        ) : (
          draft.isRead && <OfferIt identity={identity} stored={draft.value} />
        )
      }
      beside={
        <>
          <CardPreview draft={draft.value} />
          <Linkable identity={identity} draft={draft.value} />
        </>
      }
    >
      <Kind draft={draft} />
      <Look draft={draft} />
      <section class="card" aria-labelledby="claims">
        <h2 id="claims">Claims</h2>
        <ImportClaims draft={draft} />
        <ClaimsTable draft={draft} />
      </section>
      <Rules draft={draft} />
      <Backends draft={draft} />
    </Builder>
  );
}

function Kind({ draft }: { readonly draft: Draft }) {
  const hasMetadata = typeof at(draft.value, 'vct') === 'object';
  return (
    <section class="card" aria-labelledby="kind">
      <h2 id="kind">What it is</h2>
      <Field draft={draft} path={['id']} label="Id" hint="Wallets and offers name it so. It cannot be changed." isFixed={!draft.isNew} />
      <Field draft={draft} path={['description']} label="Description, for administrators" />
      <Field draft={draft} path={['config', 'format']} label="Format" choices={FORMATS} />
      {isMdoc(draft.value) ? (
        <div class="pair">
          <Field draft={draft} path={['config', 'docType']} label="Document type" />
          <Field draft={draft} path={['config', 'namespace']} label="Namespace" />
        </div>
      ) : (
        <Field
          draft={draft}
          path={['vct']}
          label="Type (vct)"
          isFixed={hasMetadata}
          hint={
            hasMetadata
              ? 'The JSON has the metadata of the type, which the service hosts.'
              : 'A URI of yours, or one of a rulebook such as urn:eudi:pid:1.'
          }
        />
      )}
    </section>
  );
}

function Look({ draft }: { readonly draft: Draft }) {
  const displays = listAt(draft.value, 'config', 'display');
  return (
    <section class="card" aria-labelledby="look">
      <h2 id="look">How it looks</h2>
      {displays.length === 0 && (
        <button type="button" class="quiet" onClick={() => draft.change(['config', 'display'], BLANK.config.display)}>
          Give it a name and colours
        </button>
      )}
      {displays.map((display, index) => {
        const place = ['config', 'display', index];
        const locale = textAt(display, 'locale') || 'any language';
        return (
          <fieldset key={index}>
            <legend>In {locale}</legend>
            <Field draft={draft} path={[...place, 'name']} label={`Name (${locale})`} />
            <Field draft={draft} path={[...place, 'description']} label={`Text for the user (${locale})`} />
            <div class="pair">
              <Field draft={draft} path={[...place, 'background_color']} label={`Background (${locale})`} />
              <Field draft={draft} path={[...place, 'text_color']} label={`Text colour (${locale})`} />
            </div>
          </fieldset>
        );
      })}
    </section>
  );
}

function Rules({ draft }: { readonly draft: Draft }) {
  return (
    <section class="card" aria-labelledby="rules">
      <h2 id="rules">What holds for it</h2>
      <Field
        draft={draft}
        path={['keyBinding']}
        label="Bound to a key of the wallet"
        kind="checkbox"
        isFixed={isMdoc(draft.value)}
        unstated
      />
      <Field draft={draft} path={['statusManagement']} label="Can be revoked and suspended" kind="checkbox" />
      <Field
        draft={draft}
        path={['lifeTime']}
        label="Lives for so many seconds"
        kind="number"
        hint="31536000 is a year. Left empty, an SD-JWT VC does not expire and an mdoc lives 90 days."
      />
      <Field draft={draft} path={['keyChainId']} label="Signed by the key chain" hint="Left empty, the oldest one for signing signs." />
    </section>
  );
}

function Backends({ draft }: { readonly draft: Draft }) {
  return (
    <section class="card" aria-labelledby="backends">
      <h2 id="backends">Your backends</h2>
      <WebhookFields
        draft={draft}
        path={['claimsWebhook']}
        about="claims"
        label="Backend that knows the claims (webhook)"
        hint="Asked when a wallet collects the credential. None unless stated: the offer or this configuration has the claims."
      />
      <WebhookFields
        draft={draft}
        path={['notificationWebhook']}
        about="notifications"
        label="Backend that is told what became of it (webhook)"
        hint="Hears whether the wallet took, refused or deleted the credential. None unless stated. Both are public https, or an address that OUTBOUND_ALLOW names."
      />
    </section>
  );
}

type Issuance = { readonly batchSize?: number };

function Linkable({ identity, draft }: { readonly identity: Identity; readonly draft: unknown }) {
  const { value } = useAsked<Issuance>(identity, '/issuer/config');
  return (
    <section class="card" aria-labelledby="linkable">
      <h2 id="linkable">What a verifier could link</h2>
      <p class="fine">Values that are the same whenever the credential is shown, so that they tell that it is the same holder.</p>
      <ul class="plain-list">
        {linkable(draft, value?.batchSize ?? 1).map(({ what, why }) => (
          <li key={what}>
            <strong>{what}.</strong> {why}
          </li>
        ))}
      </ul>
    </section>
  );
}
