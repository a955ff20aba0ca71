import type { Openid4vpClient } from '@openid4vc/openid4vp';
import { base64url } from 'jose';
import type { StoredCredential } from './cards.ts';
import { isTouched, type Path } from './claims.ts';
import { newKey, randomBytes } from './keys.ts';
import { presentMdoc, readMdoc } from './mdoc.ts';
import { canMisbehave, type Misbehaviour } from './misbehaviours.ts';
import { encryptionKeyOf, type ReadRequest } from './requests.ts';
import { presentSdJwt, readSdJwt } from './sd-jwt.ts';

/** What the user shows, by the id of the query. */
export type Choice = Readonly<Record<string, Chosen>>;
export type Chosen = {
  readonly credential: StoredCredential;
  /** Paths of the claims to tell; absent: what was asked for. */
  readonly disclose?: readonly Path[];
};

/** What the verifier answered. */
export type Answer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Where the verifier wants the browser to go. */
  readonly redirectUri?: string;
};

const A_DAY = 86_400;

/** For each query that has to be answered the first card that answers it. @throws Error when one has none. */
export function firstChoice({ queries, sets }: ReadRequest): Choice {
  const chosen: Record<string, Chosen> = {};
  const hasMatch = (id: string) => queries.some((query) => query.id === id && query.matches.length > 0);
  const ids =
    sets.length === 0
      ? queries.map(({ id }) => id)
      : sets.flatMap(({ options, isRequired }) => {
          const option = options.find((names) => names.every(hasMatch));
          return option ?? (isRequired ? (options[0] ?? []) : []);
        });
  for (const id of new Set(ids)) {
    const query = queries.find((one) => one.id === id);
    const [match] = query?.matches ?? [];
    if (match === undefined) {
      const types = query?.types.join(' or ') || query?.format || id;
      throw new Error(`the wallet has no card that answers "${id}": it asks for ${types}`);
    }
    chosen[id] = { credential: match.credential };
  }
  return chosen;
}

/** The presentations of an answer, one for each query that is answered. */
export async function presentationsFor(
  request: ReadRequest,
  choice: Choice,
  misbehaviour?: Misbehaviour,
): Promise<Record<string, [string]>> {
  const vpToken: Record<string, [string]> = {};
  for (const [id, chosen] of Object.entries(choice)) {
    const { format } = chosen.credential;
    if (misbehaviour !== undefined && !canMisbehave(misbehaviour, format))
      throw new Error(`there is no "${misbehaviour}" for a card of the format ${format}`);
    vpToken[id] = [await presentationOf(request, id, chosen, misbehaviour)];
  }
  return vpToken;
}

async function presentationOf(
  request: ReadRequest,
  id: string,
  { credential, disclose }: Chosen,
  misbehaviour: Misbehaviour | undefined,
): Promise<string> {
  const asked = askedPaths(request, id, credential);
  const told = disclose ?? asked;
  const paths = misbehaviour === 'withheld-claim' ? withoutOne(told, credential) : told;
  const altered = misbehaviour === 'changed-claim' ? told[0] : undefined;
  if (misbehaviour === 'changed-claim' && altered === undefined) throw new Error('no claim is shown, so none can be changed');
  const holder = misbehaviour === 'foreign-holder-key' ? await newKey() : credential.holder;
  const nonce = misbehaviour === 'other-nonce' ? base64url.encode(randomBytes(16)) : String(request.payload['nonce']);
  const { clientId, responseUri } = request.verifier;
  const transactionData = transactionDataFor(request, id);
  if (credential.format === 'mso_mdoc') {
    if (transactionData.length > 0) throw new Error('this wallet signs no transaction data with an mdoc');
    const binding = { clientId, responseUri, nonce, holder, encryptionKey: encryptionKeyOf(request) };
    return presentMdoc(readMdoc(credential.text), paths, binding, altered);
  }
  const issuedAt = Math.floor(Date.now() / 1000) - (misbehaviour === 'old-key-binding' ? A_DAY : 0);
  const binding = { audience: clientId, nonce, issuedAt, holder, transactionData };
  return presentSdJwt(await readSdJwt(credential.text), paths, binding, altered);
}

function askedPaths(request: ReadRequest, id: string, { id: cardId }: StoredCredential): readonly Path[] {
  const query = request.queries.find((one) => one.id === id);
  const match = query?.matches.find(({ credential }) => credential.id === cardId);
  return (match?.claims ?? query?.asked ?? []).map(({ path }) => path);
}

/** @throws Error when the card shows all that was asked for whatever its holder wants. */
function withoutOne(paths: readonly Path[], { disclosable }: StoredCredential): readonly Path[] {
  const kept = paths.find((path) => disclosable.some((place) => isTouched(place, [path])));
  if (kept === undefined) throw new Error('the card tells all that was asked for; nothing can be kept back');
  return paths.filter((path) => path !== kept);
}

/** The entries that a query is to be answered with (OpenID4VP 1.0 section 5.1), as they came. */
function transactionDataFor({ payload }: ReadRequest, id: string): string[] {
  const entries = Array.isArray(payload['transaction_data']) ? payload['transaction_data'].map(String) : [];
  return entries.filter((entry) => {
    const text = new TextDecoder().decode(base64url.decode(entry));
    const { credential_ids: ids } = JSON.parse(text) as { credential_ids?: string[] };
    return ids?.includes(id) ?? false;
  });
}

type Created = Awaited<ReturnType<Openid4vpClient['createOpenid4vpAuthorizationResponse']>>;

/** Makes the response, encrypted when the request says so. */
export function respond(vp: Openid4vpClient, { payload, isEncrypted }: ReadRequest, vpToken: Record<string, [string]>): Promise<Created> {
  return vp.createOpenid4vpAuthorizationResponse({
    authorizationRequestPayload: payload as never,
    authorizationResponsePayload: { vp_token: vpToken as never },
    ...(isEncrypted && {
      jarm: {
        encryption: { nonce: base64url.encode(randomBytes(12)) },
        serverMetadata: {
          authorization_signing_alg_values_supported: [],
          authorization_encryption_alg_values_supported: ['ECDH-ES'],
          authorization_encryption_enc_values_supported: ['A256GCM', 'A128GCM'],
        },
      },
    }),
  });
}

export async function submit(
  vp: Openid4vpClient,
  { payload }: ReadRequest,
  created: Pick<Created, 'authorizationResponsePayload' | 'jarm'>,
): Promise<Answer> {
  const { response } = await vp.submitOpenid4vpAuthorizationResponse({
    authorizationRequestPayload: payload as never,
    authorizationResponsePayload: created.authorizationResponsePayload,
    ...(created.jarm !== undefined && { jarm: created.jarm }),
  });
  const text = await (response as unknown as Response).text();
  const body = parsed(text);
  const { redirect_uri: redirectUri } = body;
  return { status: response.status, body, ...(typeof redirectUri === 'string' && { redirectUri }) };
}

function parsed(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
