import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask } from '../api/call.ts';
import { leaveFor, type Provider } from '../api/provider-login.ts';
import { Problem } from '../parts/problem.tsx';
import { enter, startFault } from './identities.ts';

export function Login({ done }: { readonly done?: () => void }) {
  const [fault, setFault] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setFault(undefined);
    startFault.value = undefined;
    try {
      await enter(String(form.get('client')), String(form.get('secret')));
      done?.();
    } catch (error) {
      setFault(error);
    } finally {
      setBusy(false);
    }
  };
  const form = (
    <form onSubmit={submit}>
      <label>
        Client id
        <input name="client" required autocomplete="username" spellcheck={false} autocapitalize="none" />
      </label>
      <label>
        Client secret
        <input name="secret" type="password" required autocomplete="current-password" />
      </label>
      {fault !== undefined && <Problem fault={fault} />}
      <button type="submit" aria-busy={isBusy} disabled={isBusy}>
        Log in
      </button>
    </form>
  );
  if (done !== undefined)
    return (
      <ByProvider
        before={<p>You leave this window for it, and come back as who you are there alone.</p>}
        otherwise={
          <>
            <p>You stay logged in as the one you are, and choose at the top which one you are.</p>
            {form}
          </>
        }
      />
    );
  return (
    <main class="login">
      <h1>
        <span aria-hidden="true">◉</span> Vidimus
      </h1>
      {startFault.value !== undefined && <Problem fault={new Error(startFault.value)} />}
      <ByProvider otherwise={form} />
      <details>
        <summary>Where do I find these?</summary>
        <p>
          A service that was started without settings keeps them in <code>data/secrets.env</code>: the client <code>root</code> manages
          tenants. Each tenant has a client <code>&lt;tenant&gt;-admin</code>, whose secret was shown when the tenant was made.
        </p>
        <p>
          The start also prints a link that logs you in, once. What you enter stays in the memory of this window: after a reload you log in
          again.
        </p>
      </details>
    </main>
  );
}

function ByProvider({ before, otherwise }: { readonly before?: VNode; readonly otherwise: VNode }) {
  const [provider, setProvider] = useState<Provider>();
  const [fault, setFault] = useState<unknown>();
  useEffect(() => {
    ask<{ provider?: Provider }>(undefined, 'GET', '/console/login')
      .then(({ provider: found }) => setProvider(found))
      .catch(setFault);
  }, []);
  if (provider === undefined) return fault === undefined ? otherwise : <Problem fault={fault} />;
  return (
    <>
      {before}
      <button type="button" onClick={() => leaveFor(provider).catch(setFault)}>
        Log in at {new URL(provider.issuer).host}
      </button>
      {fault !== undefined && <Problem fault={fault} />}
    </>
  );
}
