import { useEffect, useState } from 'preact/hooks';
import { ApiFailure, ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Problem } from '../../parts/problem.tsx';
import { fieldsOf, readJson, SchemaFields, valuesOf } from '../../parts/schema-fields.tsx';
import { Time } from '../../parts/time.tsx';
import type { Identity } from '../../shell/identities.ts';
import type { DeferredRecord, DeferredState } from './deferred-record.ts';

type Props = { readonly identity: Identity; readonly state: DeferredState; readonly again: () => void };

export function Deferred({ identity, state: { deferred, fault, again: readAgain }, again }: Props) {
  const pending = deferred.filter(({ status }) => status === 'pending');
  if (fault !== undefined) return <Problem fault={fault} />;
  if (pending.length === 0) return null;
  const done = () => {
    readAgain();
    again();
  };
  return (
    <section class="card" aria-labelledby="deferred">
      <h2 id="deferred">Waits for you</h2>
      <p class="fine">The wallet comes back by itself. What nobody decides until its end is told to it as a refusal.</p>
      {pending.map((transaction) => (
        <div key={transaction.transactionId} class="waiting">
          <p>
            <strong>{transaction.credentialConfigurationId}</strong>{' '}
            <span class="fine">
              {keysOf(transaction)}, ends <Time at={transaction.expiresAt} />
            </span>
          </p>
          <div class="filters">
            <Complete identity={identity} transaction={transaction} done={done} />
            <Fail identity={identity} transaction={transaction} done={done} />
          </div>
        </div>
      ))}
    </section>
  );
}

function keysOf({ holderKeys: { length } }: DeferredRecord): string {
  if (length === 0) return 'one credential, bound to no key';
  return length === 1 ? 'one credential' : `${length} credentials of the same claims`;
}

type OneProps = { readonly identity: Identity; readonly transaction: DeferredRecord; readonly done: () => void };

const pathOf = ({ transactionId }: DeferredRecord) => `/issuer/deferred/${encodeURIComponent(transactionId)}`;

function Complete({ identity, transaction, done }: OneProps) {
  const { schema, fault } = useSchema(identity, transaction.credentialConfigurationId);
  if (fault !== undefined) return <Problem fault={fault} />;
  if (schema === undefined) return <p aria-busy="true">Loading</p>;
  const fields = fieldsOf(schema);
  const act = async (form: FormData) => {
    const claims = fields === undefined ? readJson(String(form.get('claims')), 'What stands in Claims') : valuesOf(fields, form);
    // What a person is called is nothing to copy from the list of calls.
    const [body, noted] = [{ claims }, { claims: '…' }];
    await ask(identity, 'POST', `${pathOf(transaction)}/complete`, { body, noted });
    done();
    return 'It is signed, and waits for the wallet.';
  };
  return (
    <Confirm
      label="Complete"
      about={transaction.credentialConfigurationId}
      title={`Claims of ${transaction.credentialConfigurationId}`}
      act={act}
    >
      {fields === undefined ? (
        <label>
          Claims, as JSON
          <textarea name="claims" rows={8} required placeholder={'{"given_name": "…"}'} />
        </label>
      ) : (
        <SchemaFields fields={fields} />
      )}
    </Confirm>
  );
}

function Fail({ identity, transaction, done }: OneProps) {
  const act = async (form: FormData) => {
    const body = { errorMessage: String(form.get('reason')) };
    await ask(identity, 'POST', `${pathOf(transaction)}/fail`, { body });
    done();
    return 'The wallet is told that it does not come.';
  };
  return (
    <Confirm label="Refuse" about={transaction.credentialConfigurationId} title="This credential does not come" act={act} isGrave>
      <label>
        Reason
        <input name="reason" required maxLength={1000} autocomplete="off" />
      </label>
      <p>The reason stays with you: wallets never see it. The session fails.</p>
    </Confirm>
  );
}

/** The schema of a configuration is public; null where it has none. */
function useSchema(identity: Identity, configurationId: string) {
  const [state, setState] = useState<{ readonly schema?: unknown; readonly fault?: unknown }>({});
  useEffect(() => {
    const leave = new AbortController();
    const path = `/${encodeURIComponent(identity.tenantId ?? '')}/schema/${encodeURIComponent(configurationId)}`;
    ask<unknown>(undefined, 'GET', path, { signal: leave.signal })
      .then((schema) => setState({ schema }))
      .catch((fault: unknown) => {
        if (leave.signal.aborted) return;
        setState(fault instanceof ApiFailure && fault.status === 404 ? { schema: null } : { fault });
      });
    return () => leave.abort();
  }, [identity, configurationId]);
  return state;
}
