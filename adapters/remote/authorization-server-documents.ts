import { AuthorizationServerError, type AuthorizationServerFault } from '../../application/ports/authorization-servers.ts';
import { type Remote, RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import { type ForeignKey, parseForeignKeys } from '../../domain/oauth/foreign-keys.ts';
import { metadataAddresses, parseServerMetadata, type ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import { type JsonObject, parseJsonObject } from '../../domain/shared/json.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { faultMessage } from './fault-messages.ts';

const TIMEOUT_MS = 5_000;
const DOCUMENT_BYTES = 128 * 1024;

/** Faults after which the other well-known address is tried. */
const ABSENT: ReadonlySet<AuthorizationServerFault> = new Set(['bad_status', 'not_json', 'redirected']);

/** @throws AuthorizationServerError if no address has metadata, or if they cannot be used. */
export async function fetchMetadata(remote: Remote, issuer: string, tenantId: string | undefined): Promise<ServerMetadata> {
  const addresses = metadataAddresses(issuer);
  let fault = new AuthorizationServerError('bad_issuer', `${issuer} is not a valid issuer address.`);
  for (const [index, address] of addresses.entries()) {
    const document = await fetchDocument(remote, address, tenantId).catch((error: unknown) => {
      if (!(error instanceof AuthorizationServerError) || !ABSENT.has(error.fault)) throw error;
      if (index === 0) fault = error;
      return undefined;
    });
    if (document === undefined) continue;
    const metadata = parseServerMetadata(document, issuer);
    if (typeof metadata !== 'string') return metadata;
    const what = metadata === 'wrong_issuer' ? 'name another issuer' : 'cannot be used';
    throw new AuthorizationServerError(metadata, `The metadata at ${address} ${what}.`);
  }
  throw fault;
}

/** @throws AuthorizationServerError */
export async function fetchKeys(
  remote: Remote,
  { issuer, jwksUri }: ServerMetadata,
  tenantId: string | undefined,
): Promise<readonly ForeignKey[]> {
  if (jwksUri === undefined) throw new AuthorizationServerError('bad_metadata', `The metadata of ${issuer} have no jwks_uri.`);
  const keys = parseForeignKeys(await fetchDocument(remote, jwksUri, tenantId));
  if (keys === undefined) throw new AuthorizationServerError('bad_keys', `The key set of ${issuer} cannot be used.`);
  return keys;
}

async function fetchDocument(remote: Remote, address: string, tenantId: string | undefined): Promise<JsonObject> {
  const endpoint = describe(address);
  const answer = await call(remote, address, {
    tenantId,
    method: 'GET',
    headers: { accept: 'application/json' },
    timeoutMs: TIMEOUT_MS,
    maxBytes: DOCUMENT_BYTES,
  });
  if (answer.status !== 200) throw new AuthorizationServerError('bad_status', `${endpoint} answered with status ${answer.status}.`);
  const document = parseBody(answer);
  if (document === undefined) throw new AuthorizationServerError('not_json', `${endpoint} returned a response that is not a JSON object.`);
  return document;
}

/** @throws AuthorizationServerError if no complete response arrived. */
export async function call(remote: Remote, address: string, options: Parameters<Remote['request']>[1]): Promise<RemoteResponse> {
  try {
    return await remote.request(address, options);
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error;
    const message = `${describe(address)} ${faultMessage(error)}.`;
    throw new AuthorizationServerError(error.fault, message, { cause: error });
  }
}

export function parseBody({ body }: RemoteResponse): JsonObject | undefined {
  return parseJsonObject(decodeUtf8(body) ?? '');
}

/** Origin and path: a query may contain private data. */
function describe(address: string): string {
  const { origin, pathname } = new URL(address);
  return `${origin}${pathname}`;
}
