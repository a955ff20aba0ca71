import { ask } from '../../api/call.ts';
import { Builder } from '../../parts/builder.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { Field } from '../../parts/field.tsx';
import { listAt, textAt } from '../../parts/json-paths.ts';
import { type Draft, useDraft } from '../../parts/use-draft.ts';
import { WebhookFields } from '../../parts/webhook-fields.tsx';
import type { Identity } from '../../shell/identities.ts';
import { goTo } from '../../shell/place.ts';
import { AskedCredentials } from './asked-claims.tsx';
import { DryRun } from './dry-run-panel.tsx';
import { doubtsOf } from './lint.ts';
import { type Kind, sentenceOf } from './question.ts';
import { Trusted } from './trusted.tsx';
import { useKinds } from './use-kinds.ts';

const BLANK = { id: '', dcql_query: { credentials: [] }, trustAnchors: [{ ownAuthorities: true }], values: 'requested', lifeTime: 300 };
const DERIVED = ['tenant', 'createdAt', 'updatedAt', 'warnings'];
const VALUES = { '': 'All that the wallet shows', requested: 'Only what was asked for' };

/** One question that wallets are asked again and again. */
export function QuestionBuilder({ identity, id }: { readonly identity: Identity; readonly id: string }) {
  const draft = useDraft({ identity, page: 'questions', path: '/verifier/config', id, blank: BLANK, derived: DERIVED });
  const mayWrite = identity.roles.includes('presentation:manage');
  const { kinds, knowsOwn, unread } = useKinds(identity);
  return (
    <Builder
      draft={draft}
      title={draft.isNew ? 'New question' : id}
      list={{ page: 'questions', title: 'Questions' }}
      mayWrite={mayWrite}
      actions={
        draft.isChanged ? <span class="fine">Save it before you ask it.</span> : draft.isRead && <AskIt identity={identity} id={id} />
      }
      beside={
        <>
          <Judged draft={draft.value} kinds={kinds} knowsOwn={knowsOwn} />
          <DryRun draft={draft} identity={identity} id={id} mayTry={mayWrite} />
        </>
      }
    >
      <About draft={draft} />
      <AskedCredentials draft={draft} kinds={kinds} unread={unread} />
      <Trusted draft={draft} identity={identity} mayWrite={mayWrite} />
    </Builder>
  );
}

function About({ draft }: { readonly draft: Draft }) {
  const purposes = listAt(draft.value, 'purpose');
  const [first] = purposes;
  const write = (content: string) => {
    const lang = textAt(first, 'lang') || 'en';
    const rest = purposes.slice(1);
    const next = content === '' ? rest : [{ lang, content }, ...rest];
    draft.change(['purpose'], next.length > 0 ? next : undefined);
  };
  return (
    <section class="card" aria-labelledby="about">
      <h2 id="about">The question</h2>
      <Field draft={draft} path={['id']} label="Id" hint="Requests name it so. It cannot be changed." isFixed={!draft.isNew} />
      <Field draft={draft} path={['description']} label="Description, for administrators" />
      <div class="field">
        <label>
          Purpose, for users
          <input
            value={textAt(first, 'content')}
            lang={textAt(first, 'lang') || 'en'}
            onInput={(event) => write(event.currentTarget.value)}
          />
        </label>
      </div>
      <Field draft={draft} path={['values']} label="What sessions and backends get" choices={VALUES} />
      <Field draft={draft} path={['lifeTime']} label="Can be answered for so many seconds" kind="number" hint="300 unless stated." />
      <Field
        draft={draft}
        path={['redirectUri']}
        label="Where the user goes afterwards"
        hint="Such as https://shop.example/done?session={sessionId}; nowhere unless stated."
      />
      <WebhookFields
        draft={draft}
        path={['webhook']}
        label="Backend that is told the result (webhook)"
        hint="Public https, or an address that OUTBOUND_ALLOW names. None unless stated: sessions have the result."
      />
    </section>
  );
}

type JudgedProps = { readonly draft: unknown; readonly kinds: readonly Kind[]; readonly knowsOwn: boolean };

function Judged({ draft, kinds, knowsOwn }: JudgedProps) {
  const doubts = doubtsOf(draft, { kinds, knowsOwn });
  return (
    <section class="card" aria-labelledby="in-words">
      <h2 id="in-words">In words</h2>
      <p class="sentence">{sentenceOf(draft, kinds)}</p>
      <h3>What to think over</h3>
      {doubts.length === 0 ? (
        <p>Nothing that this page sees.</p>
      ) : (
        <ul class="plain-list">
          {doubts.map(({ what, change }) => (
            <li key={what}>
              <strong>{what}</strong> {change}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function AskIt({ identity, id }: { readonly identity: Identity; readonly id: string }) {
  const act = async () => {
    const body = { response_type: 'uri', requestId: id };
    const made = await ask<{ readonly session: string }>(identity, 'POST', '/verifier/offer', { body });
    goTo('sessions', made.session);
    return 'The request is there.';
  };
  return (
    <Confirm label="Ask it" title={`Ask ${id}`} act={act}>
      <p>A request is made, with a link and a QR code for one wallet.</p>
    </Confirm>
  );
}
