import { useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Problem } from '../../parts/problem.tsx';
import { SecretShown } from '../../parts/secret-shown.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { Identity } from '../../shell/identities.ts';

type State = { readonly signing: 'v1' | 'off'; readonly createdAt: string | null; readonly former: readonly unknown[] };

const READERS = ['issuance:manage', 'presentation:manage'];
const DAY_SECONDS = 86_400;

export function WebhookSecret({ identity }: { readonly identity: Identity }) {
  const mayRead = READERS.some((role) => identity.roles.includes(role));
  const mayMake = READERS.every((role) => identity.roles.includes(role));
  const [secret, setSecret] = useState<string>();
  const { value, fault, again } = useAsked<State>(identity, mayRead ? '/webhook-secret' : undefined);
  if (!mayRead) return null;
  const isFirst = value?.createdAt === null;
  const make = async (form: FormData) => {
    const body = { overlapSeconds: form.get('overlap') === null ? 0 : DAY_SECONDS };
    const made = await ask<{ readonly secret: string }>(identity, 'POST', '/webhook-secret/rotate', { body });
    setSecret(made.secret);
    again();
    return 'The new secret signs from now on.';
  };
  return (
    <section aria-labelledby="signature">
      <h2 id="signature">Signature</h2>
      {fault !== undefined && <Problem fault={fault} />}
      {value !== undefined && (
        <>
          <p>
            {value.signing === 'off' && 'Signing is switched off. '}
            {value.createdAt === null ? (
              'Calls are signed with a key that nobody was told yet: make a secret, so that your backend can check them.'
            ) : (
              <>
                One secret signs the calls of all webhooks, made <Time at={value.createdAt} />.{' '}
                {value.former.length > 0 && 'A former one signs beside it still.'}
              </>
            )}
          </p>
          {mayMake ? (
            <Confirm label="New secret" title="A new secret for webhooks?" isGrave={!isFirst} act={make}>
              <p>
                It signs from now on, and is shown once.{' '}
                {!isFirst && 'Backends that know the former one alone refuse what comes when that has ended.'}
              </p>
              {!isFirst && (
                <label>
                  <input type="checkbox" name="overlap" defaultChecked /> The former one signs beside it for a day
                </label>
              )}
            </Confirm>
          ) : (
            <p class="fine">
              Somebody with both <code>issuance:manage</code> and <code>presentation:manage</code> makes a new one.
            </p>
          )}
        </>
      )}
      {secret !== undefined && (
        <SecretShown
          of="the webhooks"
          secret={secret}
          hint="Put it where your backend checks signatures (WEBHOOK_SECRETS in the example) now."
          close={() => setSecret(undefined)}
        />
      )}
    </section>
  );
}
