import { createHash } from 'node:crypto';
import { CompactEncrypt, importJWK } from 'jose';
import { type HolderKey, makeJwt, now } from './raw-wallet.ts';
import type { TestService } from './test-service.ts';

export type PresentationRequest = {
  readonly client_id: string;
  readonly nonce: string;
  readonly state: string;
  readonly response_uri: string;
  readonly dcql_query: { readonly credentials: readonly { readonly id: string }[] };
  readonly client_metadata: {
    readonly jwks: { readonly keys: readonly (Record<string, string> & { kid: string })[] };
  };
};

/** What a request object says; its signature is somebody else's test. */
export async function fetchRequest(service: TestService, uri: string): Promise<PresentationRequest> {
  const requestUri = new URL(uri).searchParams.get('request_uri') ?? '';
  const answer = await service.call('GET', requestUri);
  if (answer.status !== 200) throw new Error(`request object: ${answer.status} ${answer.text}`);
  return JSON.parse(Buffer.from(answer.text.split('.')[1] ?? '', 'base64url').toString());
}

/** The form of a right answer: the credential with all its disclosures, bound to the request and encrypted. */
export async function answerOf(
  request: PresentationRequest,
  credential: string,
  holder: HolderKey,
): Promise<Record<string, string>> {
  const binding = makeJwt(
    holder,
    { alg: 'ES256', typ: 'kb+jwt' },
    {
      iat: now(),
      aud: request.client_id,
      nonce: request.nonce,
      sd_hash: createHash('sha256').update(credential).digest('base64url'),
    },
  );
  const presentation = credential + binding;
  const entries = request.dcql_query.credentials.map(({ id }) => [id, [presentation]]);
  const [key] = request.client_metadata.jwks.keys;
  if (key === undefined) throw new Error('the request names no key');
  const plaintext = JSON.stringify({ vp_token: Object.fromEntries(entries), state: request.state });
  const response = await new CompactEncrypt(new TextEncoder().encode(plaintext))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
    .encrypt(await importJWK(key, 'ECDH-ES'));
  return { response };
}
