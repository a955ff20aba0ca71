import { isUndisclosed } from '../../domain/formats/sd-jwt/disclosures.ts';
import { NonceRefusal } from '../../domain/formats/sd-jwt/key-binding.ts';
import { readCertificateChain, type StatusReference } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import type { VerificationRequest } from '../../domain/sessions/session.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { type CompiledCredentialQuery, compileQuery } from '../../domain/verification/dcql/compile.ts';
import { matchCredential, type PresentedCredential } from '../../domain/verification/dcql/match.ts';
import { pickRequested } from '../../domain/verification/dcql/pick.ts';
import type { DcqlQuery } from '../../domain/verification/dcql/query.ts';
import { readVpToken } from '../../domain/verification/dcql/vp-token.ts';
import { PRESENTATION_ALGORITHMS } from '../../domain/verification/request-object.ts';
import { type CheckedPresentation, judge, type Verdict } from '../../domain/verification/verdict.ts';
import type { Certificates } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';
import { type CheckedMdoc, checkMdoc } from '../steps/check-mdoc.ts';
import { type CheckedSdJwtVc, checkSdJwtVc, type ExpectedSdJwtVc } from '../steps/check-sd-jwt-vc.ts';
import type { StatusChecker } from '../steps/check-status.ts';
import { type IssuerTrust, type IssuerTrusts, listsOf } from '../steps/issuer-trust.ts';
import type { TenantView } from '../steps/tenant-views.ts';

type Ports = {
  readonly signatures: Signatures;
  readonly certificates: Certificates;
  readonly statusChecker: StatusChecker;
  readonly issuerTrusts: IssuerTrusts;
};

/** What of a request its answer is held against. */
export type AnsweredRequest = Pick<
  VerificationRequest,
  'dcqlQuery' | 'nonce' | 'transactionData' | 'transactionDataObjects'
>;

export type PresentationsToVerify = {
  readonly view: TenantView;
  /** As it was stored when it was made: nothing that decides comes from the wallet. */
  readonly request: AnsweredRequest;
  /** Whom presentations of SD-JWT VCs may be made for. */
  readonly audience: string | readonly string[];
  /** SessionTranscript that mdocs are presented in, CBOR; made for those only. */
  readonly transcript: () => Buffer;
  readonly requestedAt: Date;
  /** Of the presentation configuration, whose issuers are trusted. */
  readonly configurationId: string | undefined;
  readonly vpToken: Json;
  readonly now: Date;
};

type Task = PresentationsToVerify & { readonly trust: IssuerTrust };

/** More presentations than any wallet sends; each costs two signatures. */
const MAX_PRESENTATIONS = 100;

/** Verifies what a wallet presents, from the bytes to the values that were asked for. */
export class PresentationVerifier {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Refusal `malformed` when the `vp_token` as a whole does not have its form. */
  async verify(wanted: PresentationsToVerify): Promise<Verdict> {
    const { request, vpToken, view, configurationId } = wanted;
    const query = compileQuery(request.dcqlQuery as unknown as DcqlQuery);
    const presented = [...readVpToken(vpToken, query)].flatMap(([id, texts]) =>
      texts.map((text, index) => ({ id, text, index })),
    );
    if (presented.length > MAX_PRESENTATIONS) throw new Refusal('malformed', 'too many presentations');
    const task = { ...wanted, trust: await this.#ports.issuerTrusts.of(view, configurationId) };
    const checked: CheckedPresentation[] = [];
    for (const { id, text, index } of presented) {
      const own = query.credentials.get(id);
      if (own !== undefined) checked.push(await this.#check(task, own, text, index));
    }
    return judge(query, checked, request.transactionData ?? []);
  }

  /** OpenID4VP 1.0 section 8.6: a bad presentation is discarded, the others count. */
  async #check(
    task: Task,
    query: CompiledCredentialQuery,
    text: string,
    index: number,
  ): Promise<CheckedPresentation> {
    const place = { queryId: query.id, index };
    try {
      const verified =
        query.format === 'mso_mdoc'
          ? this.#openMdoc(task, query, text)
          : this.#openSdJwtVc(task, query, text);
      const { issuer, statusReference: reference, chain, credential, confirmed } = verified;
      if (reference !== undefined) {
        const { view, trust } = task;
        const { anchors } = trust;
        const revocation = trust.listed.get(issuer.anchor)?.revocation;
        await this.#ports.statusChecker.check({ view, reference, chain, issuer, anchors, revocation });
      }
      return { ...place, accepted: true, values: valuesOf(query, credential), confirmed };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { reason } = error;
      const poisons = error instanceof NonceRefusal;
      return { ...place, accepted: false, reason, detail: detailOf(error, task.trust), poisons };
    }
  }

  #openSdJwtVc(task: Task, query: CompiledCredentialQuery, text: string): Verified {
    const checked = checkSdJwtVc(this.#ports, text, expectedOf(task, query));
    const chain = readCertificateChain(checked.header);
    return {
      issuer: checked.issuer,
      chain,
      statusReference: checked.statusReference,
      confirmed: checked.confirmedTransactionData,
      credential: {
        format: 'dc+sd-jwt',
        types: typesOf(checked),
        holderBound: checked.holderKey !== undefined,
        claims: checked.claims,
        alwaysVisible: checked.alwaysVisible,
        authority: this.#authorityOf(task, query, checked.issuer, chain),
      },
    };
  }

  #openMdoc(task: Task, query: CompiledCredentialQuery, text: string): Verified {
    const { now, transcript, trust } = task;
    const [docType = ''] = query.types;
    const checked = checkMdoc(this.#ports, text, {
      now,
      anchors: trust.anchors,
      transcript: transcript(),
      docType,
      holderBinding: query.holderBindingRequired,
      issuerAlgorithms: SIGNING_ALGORITHMS,
      deviceAlgorithms: SIGNING_ALGORITHMS,
    });
    return {
      issuer: checked.issuer,
      chain: checked.chain,
      statusReference: checked.statusReference,
      confirmed: [],
      credential: {
        format: 'mso_mdoc',
        types: [checked.docType],
        holderBound: checked.holderKey !== undefined,
        claims: checked.namespaces,
        alwaysVisible: {},
        authority: this.#authorityOf(task, query, checked.issuer, checked.chain),
      },
    };
  }

  /** Lists are looked through only for queries that ask for an issuer of one. */
  #authorityOf(
    { trust, now }: Task,
    { authorities = [] }: CompiledCredentialQuery,
    { authorityKeyIds }: Verified['issuer'],
    chain: readonly string[],
  ): PresentedCredential['authority'] {
    const asksForList = authorities.some(({ type }) => type === 'etsi_tl');
    const trustListUris = asksForList ? listsOf(this.#ports.certificates, trust, chain, now) : [];
    return { authorityKeyIds, trustListUris, federationEntityIds: [] };
  }
}

/** An issuer that nobody vouches for may well stand on the list that could not be had. */
function detailOf({ reason, message }: Refusal, { missing }: IssuerTrust): string {
  if (reason !== 'untrusted_chain' || missing.length === 0) return message;
  return `${message}; trust lists that could not be used: ${missing.join('; ')}`;
}

/** What both formats come to. */
type Verified = Pick<CheckedMdoc, 'issuer' | 'chain'> & {
  readonly statusReference: StatusReference | undefined;
  readonly confirmed: readonly string[];
  readonly credential: PresentedCredential;
};

/** OpenID4VP 1.0 section 8.4: an entry that names several credentials is confirmed by any one of them. */
function expectedOf(task: Task, query: CompiledCredentialQuery): ExpectedSdJwtVc {
  const { request, audience, requestedAt, trust, now } = task;
  const entries = (request.transactionData ?? []).flatMap((text, position) => {
    const ids = request.transactionDataObjects?.[position]?.['credential_ids'];
    return Array.isArray(ids) && ids.includes(query.id) ? [{ text, isOnly: new Set(ids).size === 1 }] : [];
  });
  return {
    now,
    requestedAt,
    nonce: request.nonce,
    audience,
    transactionData: entries.flatMap(({ text, isOnly }) => (isOnly ? [text] : [])),
    alternativeTransactionData: entries.flatMap(({ text, isOnly }) => (isOnly ? [] : [text])),
    anchors: trust.anchors,
    holderBinding: query.holderBindingRequired,
    sdJwtAlgorithms: PRESENTATION_ALGORITHMS,
    kbAlgorithms: PRESENTATION_ALGORITHMS,
  };
}

function valuesOf(query: CompiledCredentialQuery, credential: PresentedCredential): JsonObject {
  const match = matchCredential(query, credential, isUndisclosed);
  if (!match.matched) throw new Refusal(match.reason, match.detail);
  return pickRequested(match, credential, isUndisclosed);
}

/** SD-JWT VC section 2.2.2.2: the issuer itself says which other types the credential is. */
function typesOf({ vct, alwaysVisible }: CheckedSdJwtVc): readonly string[] {
  const others = alwaysVisible['aka_vcts'];
  return Array.isArray(others) ? [vct, ...others.filter((type) => typeof type === 'string')] : [vct];
}
