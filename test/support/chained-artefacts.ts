import { randomBytes } from 'node:crypto';
import { Store } from '../../application/ports/store.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import { createHandle, hashSecret } from '../../domain/oauth/handle.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, type RawWallet } from './raw-wallet.ts';
import type { TestService } from './test-service.ts';

/** Pushes a request to the chained authorization server. */
export async function pushChained({ service, tenant }: RawWallet, scope: string): Promise<string> {
  const form = { ...AUTHORIZATION_REQUEST, scope };
  const answer = await service.call('POST', `/${tenant}/chained-as/par`, { form });
  if (answer.status !== 201) throw new Error(`par: ${answer.status} ${answer.text}`);
  return answer.body.request_uri;
}

const secret = () => randomBytes(32).toString('base64url');

/** Creates a login that waits for the redirect from the upstream provider. */
export async function openLogin(
  service: TestService,
  tenantId: string,
  credentialConfigurationId: string,
): Promise<{ loginState: string; loginCookie: string }> {
  const state = secret();
  const { id, cookie } = await commitWith(service, tenantId, credentialConfigurationId, {
    stage: 'upstream',
    handles: { upstream: hashSecret(state) },
  });
  return { loginState: createHandle(id, state), loginCookie: cookie };
}

/** Creates a login that waits for the user to confirm the wallet. */
export async function openConfirmation(
  service: TestService,
  tenantId: string,
  credentialConfigurationId: string,
): Promise<{ confirmation: string; confirmationCookie: string }> {
  const handle = secret();
  const { id, cookie } = await commitWith(service, tenantId, credentialConfigurationId, {
    stage: 'confirming',
    handles: { confirmation: hashSecret(handle) },
    identity: { iss: 'http://127.0.0.1:9', sub: 'alice', token_claims: {} },
  });
  return { confirmation: createHandle(id, handle), confirmationCookie: cookie };
}

async function commitWith(
  { service }: TestService,
  tenantId: string,
  credentialConfigurationId: string,
  transaction: Pick<Authorization, 'stage' | 'handles' | 'identity'>,
): Promise<{ id: string; cookie: string }> {
  const [id, cookie] = [randomBytes(16).toString('base64url'), secret()];
  const now = new Date();
  await stepsOf(service.container.get(Store), tenantId as TenantId).commit({
    serving: true,
    opens: {
      authorization: {
        id,
        server: 'chained',
        version: 1,
        createdAt: now,
        expiresAt: new Date(now.getTime() + 1_800_000),
        request: {
          clientId: CLIENT_ID,
          redirectUri: AUTHORIZATION_REQUEST.redirect_uri,
          codeChallenge: AUTHORIZATION_REQUEST.code_challenge,
          credentialConfigurationIds: [credentialConfigurationId],
          byDetails: false,
        },
        holder: { clientId: CLIENT_ID },
        session: null,
        upstream: {
          issuer: 'http://127.0.0.1:9',
          clientId: tenantId,
          nonce: secret(),
          codeVerifier: secret(),
          browserHash: hashSecret(cookie),
        },
        ...transaction,
      },
    },
    uses: [],
  });
  return { id, cookie: `vidimus-login-${id}=${cookie}` };
}
