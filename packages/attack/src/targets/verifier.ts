import { CompactEncrypt, importJWK } from 'jose';
import type { Canary } from '../core/canary.ts';
import { describe, expectSuccess, held as heldOff, NoControl, open, type Seen, unclear } from '../core/case.ts';
import { runCommand } from '../core/command.ts';
import type { Answer, Fields, HttpClient, Json } from '../core/http.ts';
import type { Options } from '../core/options.ts';
import { Skip } from '../core/skip.ts';
import { fits, type Held, heldFromFiles, heldOf } from './held.ts';
import type { Issuer } from './issuer.ts';
import { type DocumentBend, presentDocument } from './mdoc.ts';
import type { Asked, RequestSource } from './requests.ts';
import { type CardBend, presentCard } from './sd-jwt.ts';
import type { VidimusApi } from './vidimus-api.ts';

type Format = Held['format'];

/** A verifier, as a wallet sees it that answers each request by hand. */
export class Verifier {
  readonly http: HttpClient;
  readonly canary: Canary;
  readonly options: Options;
  readonly sources: readonly RequestSource[];
  readonly issuer: Issuer | undefined;
  readonly api: VidimusApi | undefined;
  readonly #credentials: Held[];

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

  /** Requests for one credential of this format. @throws Skip when none is made. */
  source(format: Format): RequestSource {
    const found = this.sources.find(({ query }) => query.credentials?.length === 1 && query.credentials[0].format === format);
    if (found === undefined) throw new Skip(`no request asks for one credential of the format ${format} alone`);
    return found;
  }

  ask(format: Format = 'dc+sd-jwt'): Promise<Asked> {
    return this.source(format).next();
  }

  /** A credential for the one query: from a file, or of the issuer that is attacked, too. */
  async held(asked: Asked): Promise<Held> {
    const query = queryOf(asked);
    const known = this.#credentials.find((one) => fits(one, query));
    if (known !== undefined) return known;
    const got = await this.freshCredential(query);
    this.#credentials.push(got);
    return got;
  }

  /** One that nobody presented yet. @throws Skip when the issuer offers none that fits. */
  async freshCredential(query: Json): Promise<Held> {
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

  async card(asked: Asked, bend?: CardBend, held?: Held): Promise<string> {
    return presentCard(asked, queryOf(asked), held ?? (await this.held(asked)), bend);
  }

  async document(asked: Asked, bend?: DocumentBend): Promise<string> {
    return presentDocument(asked, queryOf(asked), await this.held(asked), bend);
  }

  /** The response in the mode that was asked for (OpenID4VP 1.0 section 8). */
  async answer(asked: Asked, vpToken: unknown, change: Json = {}): Promise<Answer> {
    const { state } = asked.payload;
    const content = { vp_token: vpToken, ...(state === undefined ? {} : { state }), ...change };
    if (!isEncrypted(asked)) return this.plain(asked, content);
    return this.post(asked, { response: await encryptResponse(asked, content) });
  }

  plain(asked: Asked, content: Json): Promise<Answer> {
    const fields = Object.entries(content).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
    return this.post(asked, Object.fromEntries(fields));
  }

  post(asked: Asked, fields: Fields): Promise<Answer> {
    return this.http.form(String(asked.payload.response_uri), fields);
  }

  /** A right answer to a fresh request. */
  async present(format: Format): Promise<void> {
    const asked = await this.ask(format);
    const text = format === 'mso_mdoc' ? await this.document(asked) : await this.card(asked);
    const answer = await this.answer(asked, { [queryOf(asked).id]: [text] });
    expectSuccess(answer, 'presentation');
    if ((await this.result(asked)) === 'refused') throw new NoControl('the verifier refused a right presentation');
  }

  /** What the verifier made of the answer, where it can be asked. */
  async result(asked: Asked): Promise<'accepted' | 'refused' | undefined> {
    if (this.api !== undefined && asked.session !== undefined) {
      return (await this.api.sessionStatus(asked.session)) === 'completed' ? 'accepted' : 'refused';
    }
    const command = this.options['result-command'];
    if (command === undefined) return undefined;
    const said = await runCommand(command, { REQUEST_LINK: asked.link });
    return said === 'accepted' ? 'accepted' : 'refused';
  }

  /** Judges an answer that must not count, by the answer and by what became of the request. */
  async mustFail(asked: Asked, answer: Answer): Promise<Seen> {
    const seen = describe(answer);
    if (answer.status >= 500 || answer.status === -1) return open(answer.status === -1 ? 'hangs' : `breaks: ${seen}`);
    const result = await this.result(asked);
    if (result === 'accepted') return open(`accepted: ${seen}`);
    if (answer.status >= 400) return heldOff(seen);
    if (result === 'refused') return heldOff(`${seen}, and refused`);
    return answer.status === 0 ? unclear(seen) : open(`taken: ${seen}`);
  }
}

export const queryOf = ({ payload }: Asked): Json => payload.dcql_query?.credentials?.[0] ?? {};
export const isEncrypted = ({ payload }: Asked): boolean => String(payload.response_mode).endsWith('.jwt');

/** OpenID4VP 1.0 section 8.3. */
export async function encryptResponse(asked: Asked, content: unknown, bend: { header?: Json; jwk?: Json } = {}): Promise<string> {
  const { jwks, encrypted_response_enc_values_supported: encs } = asked.payload.client_metadata ?? {};
  const jwk = bend.jwk ?? jwks?.keys?.[0];
  if (jwk === undefined) throw new Skip('responses to this verifier are not encrypted');
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: encs?.[0] ?? 'A128GCM', kid: jwk.kid, ...bend.header })
    .encrypt(await importJWK(jwk, 'ECDH-ES'));
}
