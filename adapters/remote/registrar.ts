import type { z } from 'zod';
import type { Clock } from '../../application/ports/clock.ts';
import { Registrar, type RegistrarAccount, RegistrarError } from '../../application/ports/registrar.ts';
import { type Remote, RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import {
  type AccessCertificateRequest,
  IssuedAccessCertificate,
  IssuedRegistrationCertificate,
  RelyingParties,
  type RelyingParty,
} from '../../domain/registrar/registrar-api.ts';
import type { CompleteRegistrationBody } from '../../domain/registrar/registration-certificate-request.ts';
import { parseJson } from '../../domain/shared/json.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { faultMessage } from './fault-messages.ts';
import { RegistrarTokens } from './registrar-tokens.ts';

const TIMEOUT_MS = 5_000;
const ANSWER_BYTES = 512 * 1024;

type Request = { readonly method: 'GET' } | { readonly method: 'POST'; readonly json: object };
type Issued = Awaited<ReturnType<Registrar['issueRegistrationCertificate']>>;

/** Calls registrars through the outgoing client of the service. */
export class RemoteRegistrar extends Registrar {
  readonly #remote: Remote;
  readonly #tokens: RegistrarTokens;

  constructor(ports: { readonly remote: Remote; readonly clock: Clock }) {
    super();
    this.#remote = ports.remote;
    this.#tokens = new RegistrarTokens(ports);
  }

  override logIn(account: RegistrarAccount): Promise<void> {
    return this.#tokens.renew(account);
  }

  override async relyingParties(account: RegistrarAccount): Promise<readonly RelyingParty[]> {
    const path = '/relying-parties';
    return read(RelyingParties, await this.#call(account, path, { method: 'GET' }), account, path);
  }

  override async issueAccessCertificate(account: RegistrarAccount, request: AccessCertificateRequest) {
    const path = '/access-certificates';
    const answer = await this.#call(account, path, { method: 'POST', json: request });
    return read(IssuedAccessCertificate, answer, account, path);
  }

  override async issueRegistrationCertificate(
    account: RegistrarAccount,
    request: CompleteRegistrationBody & { readonly rpId: string },
  ): Promise<Issued> {
    const path = '/registration-certificates';
    const answer = await this.#call(account, path, { method: 'POST', json: request });
    return toIssued(read(IssuedRegistrationCertificate, answer, account, path));
  }

  override async findRegistrationCertificate(account: RegistrarAccount, id: string): Promise<Issued | undefined> {
    // As the last path segment these would address another resource (URL standard, double-dot segments).
    if (id === '.' || id === '..') return undefined;
    const path = `/registration-certificates/${encodeURIComponent(id)}`;
    const answer = await this.#call(account, path, { method: 'GET' }, [404]);
    if (answer.status === 404) return undefined;
    const issued = read(IssuedRegistrationCertificate, answer, account, path);
    if (issued.id !== id) throw badAnswer(account, path, 'with another certificate');
    return toIssued(issued);
  }

  /** @param expected further statuses that are valid responses. */
  async #call(account: RegistrarAccount, path: string, request: Request, expected: readonly number[] = []): Promise<RemoteResponse> {
    let answer = await this.#attempt(account, path, request);
    // The token may have been revoked early, so the call is repeated with a new one.
    if (answer.status === 401) answer = await this.#attempt(account, path, request);
    const { status } = answer;
    if ((status >= 200 && status <= 299) || expected.includes(status)) return answer;
    const fault = status >= 500 || status === 429 ? 'unavailable' : 'refused';
    throw new RegistrarError(fault, `${describeAddress(account, path)} answered with status ${status}.`);
  }

  async #attempt(account: RegistrarAccount, path: string, request: Request): Promise<RemoteResponse> {
    const token = await this.#tokens.get(account);
    const isPost = request.method === 'POST';
    try {
      const answer = await this.#remote.request(addressOf(account, path), {
        tenantId: account.tenantId,
        method: request.method,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json', ...(isPost && { 'content-type': 'application/json' }) },
        ...(isPost && { body: JSON.stringify(request.json) }),
        timeoutMs: TIMEOUT_MS,
        maxBytes: ANSWER_BYTES,
      });
      if (answer.status === 401) this.#tokens.drop(account, token);
      return answer;
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      const isOutage = ['timeout', 'unreachable', 'busy'].includes(error.fault);
      const message = `${describeAddress(account, path)} ${faultMessage(error)}.`;
      throw new RegistrarError(isOutage ? 'unavailable' : 'bad_answer', message, { cause: error });
    }
  }
}

function read<T>(schema: z.ZodType<T>, { body }: RemoteResponse, account: RegistrarAccount, path: string): T {
  const parsed = schema.safeParse(parseJson(decodeUtf8(body) ?? ''));
  if (parsed.success) return parsed.data;
  throw badAnswer(account, path, 'with something that no registrar says');
}

/** Every value except a plain negative counts as revoked. */
function toIssued({ id, jwt, relyingPartyId, revoked }: z.infer<typeof IssuedRegistrationCertificate>): Issued {
  const isRevoked = revoked !== undefined && revoked !== null && revoked !== false;
  return { id, jwt, ...(typeof relyingPartyId === 'string' && { relyingPartyId }), revoked: isRevoked };
}

function badAnswer(account: RegistrarAccount, path: string, what: string): RegistrarError {
  return new RegistrarError('bad_answer', `${describeAddress(account, path)} answered ${what}.`);
}

function addressOf({ configuration }: RegistrarAccount, path: string): string {
  return configuration.registrarUrl.replace(/\/+$/, '') + path;
}

function describeAddress(account: RegistrarAccount, path: string): string {
  return `The registrar at ${addressOf(account, path)}`;
}
