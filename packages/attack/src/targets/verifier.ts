import { CompactEncrypt, importJWK } from 'jose';
import type { Canary } from '../core/canary.ts';
import { type CaseResult, describe, expectSuccess, held as heldOff, NoControl, open, unclear } from '../core/case.ts';
import { runCommand } from '../core/command.ts';
import type { Answer, Fields, HttpClient, Json } from '../core/http.ts';
import type { Options } from '../core/options.ts';
import { Skip } from '../core/skip.ts';
import { fits, type HeldCredential, heldFromFiles, heldOf } from './held-credential.ts';
import type { Issuer } from './issuer.ts';
import { type DocumentAlteration, presentDocument } from './mdoc.ts';
import type { FetchedRequest, RequestSource } from './requests.ts';
import { type CardAlteration, presentCard } from './sd-jwt.ts';
import type { VidimusApi } from './vidimus-api.ts';

type Format = HeldCredential['format'];

/** A verifier, with a client that answers each request separately. */
export class Verifier {
  readonly http: HttpClient;
  readonly canary: Canary;
  readonly options: Options;
  readonly sources: readonly RequestSource[];
  readonly issuer: Issuer | undefined;
  readonly api: VidimusApi | undefined;
  readonly #credentials: HeldCredential[];

  constructor(parts: Pick<Verifier, 'http' | 'canary' | 'options' | 'sources' | 'issuer' | 'api'>) {
    this.http = parts.http;
    this.canary = parts.canary;
    this.options = parts.options;
    this.sources = parts.sources;
    this.issuer = parts.issuer;
    this.api = parts.api;
    const keys = parts.options['holder-key'];
    this.#credentials = parts.options.credential.map((file, index) => heldFromFiles(file, keys[index] ?? ''));
  }

  /** Requests for one credential of this format. @throws Skip when there are none. */
  source(format: Format): RequestSource {
    const source = this.sources.find(({ query }) => query.credentials?.length === 1 && query.credentials[0].format === format);
    if (source === undefined) throw new Skip(`no request asks for one credential of the format ${format} alone`);
    return source;
  }

  ask(format: Format = 'dc+sd-jwt'): Promise<FetchedRequest> {
    return this.source(format).next();
  }

  /** A credential for the query: from a file, or from the attacked issuer. */
  async held(request: FetchedRequest): Promise<HeldCredential> {
    const query = queryOf(request);
    const storedCredential = this.#credentials.find((credential) => fits(credential, query));
    if (storedCredential !== undefined) return storedCredential;
    const newCredential = await this.freshCredential(query);
    this.#credentials.push(newCredential);
    return newCredential;
  }

  /** An unpresented credential. @throws Skip when the issuer offers none of the type. */
  async freshCredential(query: Json): Promise<HeldCredential> {
    const { issuer } = this;
    if (issuer === undefined) throw new Skip('no credential to present; give --credential and --holder-key, or an issuer');
    const source = issuer.sources.find(({ kind, ids }) => {
      const { format, vct, doctype } = issuer.configuration(ids[0]);
      return kind === 'pre' && fits({ format, type: format === 'mso_mdoc' ? doctype : vct }, query);
    });
    if (source === undefined) throw new Skip('no offer leads to a credential that is asked for');
    const grant = await issuer.token(source);
    const { text, key } = await issuer.issue(grant);
    return heldOf(text, key, grant.offer.session);
  }

  async card(request: FetchedRequest, alteration?: CardAlteration, held?: HeldCredential): Promise<string> {
    return presentCard(request, queryOf(request), held ?? (await this.held(request)), alteration);
  }

  async document(request: FetchedRequest, alteration?: DocumentAlteration): Promise<string> {
    return presentDocument(request, queryOf(request), await this.held(request), alteration);
  }

  /** The response in the requested mode (OpenID4VP 1.0 section 8). */
  async answer(request: FetchedRequest, vpToken: unknown, change: Json = {}): Promise<Answer> {
    const { state } = request.payload;
    const content = { vp_token: vpToken, ...(state === undefined ? {} : { state }), ...change };
    if (!isEncrypted(request)) return this.plain(request, content);
    return this.post(request, { response: await encryptResponse(request, content) });
  }

  plain(request: FetchedRequest, content: Json): Promise<Answer> {
    const fields = Object.entries(content).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
    return this.post(request, Object.fromEntries(fields));
  }

  post(request: FetchedRequest, fields: Fields): Promise<Answer> {
    return this.http.form(String(request.payload.response_uri), fields);
  }

  /** Answers a fresh request correctly. */
  async present(format: Format): Promise<void> {
    const request = await this.ask(format);
    const text = format === 'mso_mdoc' ? await this.document(request) : await this.card(request);
    const answer = await this.answer(request, { [queryOf(request).id]: [text] });
    expectSuccess(answer, 'presentation');
    if ((await this.result(request)) === 'refused') throw new NoControl('the verifier refused a right presentation');
  }

  /** The verifier's result, if it can be queried. */
  async result(request: FetchedRequest): Promise<'accepted' | 'refused' | undefined> {
    if (this.api !== undefined && request.session !== undefined) {
      return (await this.api.sessionStatus(request.session)) === 'completed' ? 'accepted' : 'refused';
    }
    const command = this.options['result-command'];
    if (command === undefined) return undefined;
    const commandOutput = await runCommand(command, { REQUEST_LINK: request.link });
    return commandOutput === 'accepted' ? 'accepted' : 'refused';
  }

  /** Evaluates a response that must be rejected, by the status and by the result of the request. */
  async mustFail(request: FetchedRequest, answer: Answer): Promise<CaseResult> {
    const observation = describe(answer);
    if (answer.status >= 500 || answer.status === -1) return open(answer.status === -1 ? 'hangs' : `breaks: ${observation}`);
    const result = await this.result(request);
    if (result === 'accepted') return open(`accepted: ${observation}`);
    if (answer.status >= 400) return heldOff(observation);
    if (result === 'refused') return heldOff(`${observation}, and refused`);
    return answer.status === 0 ? unclear(observation) : open(`taken: ${observation}`);
  }
}

export const queryOf = ({ payload }: FetchedRequest): Json => payload.dcql_query?.credentials?.[0] ?? {};
export const isEncrypted = ({ payload }: FetchedRequest): boolean => String(payload.response_mode).endsWith('.jwt');

/** OpenID4VP 1.0 section 8.3. */
export async function encryptResponse(
  request: FetchedRequest,
  content: unknown,
  alteration: { header?: Json; jwk?: Json } = {},
): Promise<string> {
  const { jwks, encrypted_response_enc_values_supported: encs } = request.payload.client_metadata ?? {};
  const jwk = alteration.jwk ?? jwks?.keys?.[0];
  if (jwk === undefined) throw new Skip('responses to this verifier are not encrypted');
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: encs?.[0] ?? 'A128GCM', kid: jwk.kid, ...alteration.header })
    .encrypt(await importJWK(jwk, 'ECDH-ES'));
}
