import type { Openid4vpClient } from '@openid4vc/openid4vp';
import { base64url } from 'jose';
import type { StoredCredential } from './cards.ts';
import { overlapsPaths, type Path } from './claims.ts';
import { newKey, randomBytes } from './keys.ts';
import { presentMdoc, readMdoc } from './mdoc.ts';
import { canMisbehave, type Misbehaviour } from './misbehaviours.ts';
import { encryptionKeyOf, type ReadRequest } from './requests.ts';
import { presentSdJwt, readSdJwt } from './sd-jwt.ts';

/** The credentials that the user presents, by query id. */
export type Choice = Readonly<Record<string, ChosenCredential>>;
export type ChosenCredential = {
  readonly credential: StoredCredential;
  /** Paths of the claims to disclose; absent: the requested ones. */
  readonly disclose?: readonly Path[];
};

/** The verifier's response. */
export type Answer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** The redirect of the browser, if any. */
  readonly redirectUri?: string;
};

const A_DAY = 86_400;

/** Selects the first matching credential for each required query. @throws Error for a query without a match. */
export function firstChoice({ queries, sets }: ReadRequest): Choice {
  const chosen: Record<string, ChosenCredential> = {};
  const hasMatch = (id: string) => queries.some((query) => query.id === id && query.matches.length > 0);
  const ids =
    sets.length === 0
      ? queries.map(({ id }) => id)
      : sets.flatMap(({ options, isRequired }) => {
          const option = options.find((names) => names.every(hasMatch));
          return option ?? (isRequired ? (options[0] ?? []) : []);
        });
  for (const id of new Set(ids)) {
    const query = queries.find((candidate) => candidate.id === id);
    const [match] = query?.matches ?? [];
    if (match === undefined) {
      const types = query?.types.join(' or ') || query?.format || id;
      throw new Error(`the wallet has no credential for "${id}": it requests ${types}`);
    }
    chosen[id] = { credential: match.credential };
  }
  return chosen;
}

/** Presentations for a response, one per answered query. */
export async function presentationsFor(
  request: ReadRequest,
  choice: Choice,
  misbehaviour?: Misbehaviour,
): Promise<Record<string, [string]>> {
  const vpToken: Record<string, [string]> = {};
  for (const [id, chosen] of Object.entries(choice)) {
    const { format } = chosen.credential;
    if (misbehaviour !== undefined && !canMisbehave(misbehaviour, format))
      throw new Error(`"${misbehaviour}" is not available for a credential of the format ${format}`);
    vpToken[id] = [await presentationOf(request, id, chosen, misbehaviour)];
  }
  return vpToken;
}

async function presentationOf(
  request: ReadRequest,
  id: string,
  { credential, disclose }: ChosenCredential,
  misbehaviour: Misbehaviour | undefined,
): Promise<string> {
  const requestedPaths = requestedPathsOf(request, id, credential);
  const disclosedPaths = disclose ?? requestedPaths;
  const paths = misbehaviour === 'withheld-claim' ? withoutOneClaim(disclosedPaths, credential) : disclosedPaths;
  const altered = misbehaviour === 'changed-claim' ? disclosedPaths[0] : undefined;
  if (misbehaviour === 'changed-claim' && altered === undefined) throw new Error('no claim is disclosed, so none can be changed');
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

function requestedPathsOf(request: ReadRequest, id: string, { id: cardId }: StoredCredential): readonly Path[] {
  const query = request.queries.find((candidate) => candidate.id === id);
  const match = query?.matches.find(({ credential }) => credential.id === cardId);
  return (match?.claims ?? query?.asked ?? []).map(({ path }) => path);
}

/** Omits one requested claim. @throws Error when the credential always discloses all requested claims. */
function withoutOneClaim(paths: readonly Path[], { disclosable }: StoredCredential): readonly Path[] {
  const omitted = paths.find((path) => disclosable.some((place) => overlapsPaths(place, [path])));
  if (omitted === undefined) throw new Error('the credential discloses everything that was requested; nothing can be withheld');
  return paths.filter((path) => path !== omitted);
}

/** Encoded entries for a query (OpenID4VP 1.0 section 5.1). */
function transactionDataFor({ payload }: ReadRequest, id: string): string[] {
  const entries = Array.isArray(payload['transaction_data']) ? payload['transaction_data'].map(String) : [];
  return entries.filter((entry) => {
    const text = new TextDecoder().decode(base64url.decode(entry));
    const { credential_ids: ids } = JSON.parse(text) as { credential_ids?: string[] };
    return ids?.includes(id) ?? false;
  });
}

type CreatedResponse = Awaited<ReturnType<Openid4vpClient['createOpenid4vpAuthorizationResponse']>>;

/** Creates the response, encrypted if the request demands it. */
export function respond(
  vp: Openid4vpClient,
  { payload, isEncrypted }: ReadRequest,
  vpToken: Record<string, [string]>,
): Promise<CreatedResponse> {
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
  created: Pick<CreatedResponse, 'authorizationResponsePayload' | 'jarm'>,
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
