import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook } from '../../docs/examples/verify-webhook.mjs';
import type { BackendCall } from './backend.ts';
import type { Answer, TestService } from './test-service.ts';

type Tenant = { readonly service: TestService; readonly token: string };

/** Makes a new secret for the calls of a tenant's backends. */
export async function rotateWebhookSecret({ service, token }: Tenant, json: object = {}): Promise<string> {
  const answer = await service.call('POST', '/webhook-secret/rotate', { token, json });
  expect(answer.status, answer.text).to.equal(201);
  expect(answer.body.secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
  return answer.body.secret;
}

export async function switchSigning({ service, token }: Tenant, signing: 'v1' | 'off'): Promise<Answer> {
  const answer = await service.call('PATCH', '/webhook-secret', { token, json: { signing } });
  expect(answer.status, answer.text).to.equal(200);
  return answer;
}

/** How many signatures a call bears. */
export const signaturesOf = ({ headers }: BackendCall): number =>
  String(headers['webhook-signature'] ?? '')
    .split(' ')
    .filter((signature) => signature.startsWith('v1,')).length;

/** Whether a backend that knows this secret takes the call: by the reference library, and by that of the examples. */
export function isSignedWith(
  secret: string,
  { headers, text }: Pick<BackendCall, 'headers' | 'text'>,
): boolean {
  const verdicts = [
    () => new Webhook(secret).verify(text, headers as Record<string, string>),
    () => verifyWebhook(headers, text, secret),
  ].map((verify) => {
    try {
      verify();
      return true;
    } catch {
      return false;
    }
  });
  expect(verdicts[0], 'both agree').to.equal(verdicts[1]);
  return verdicts[0] === true;
}

/** The call with one thing changed each. */
export function bentCalls({ headers, text }: BackendCall): readonly Pick<BackendCall, 'headers' | 'text'>[] {
  const time = Number(headers['webhook-timestamp']);
  return [
    { headers, text: `${text} ` },
    { headers, text: text.replace('"', "'") },
    { headers: { ...headers, 'webhook-id': `${headers['webhook-id']}x` }, text },
    { headers: { ...headers, 'webhook-timestamp': String(time - 1) }, text },
    { headers: { ...headers, 'webhook-signature': 'v1,' }, text },
  ];
}
