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
import type { Certificates, TrustAnchor } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';
import { type CheckedMdoc, checkMdoc } from '../steps/check-mdoc.ts';
import { type CheckedSdJwtVc, checkSdJwtVc, type ExpectedSdJwtVc } from '../steps/check-sd-jwt-vc.ts';
import type { StatusChecker } from '../steps/check-status.ts';
import type { TenantView } from '../steps/tenant-views.ts';

type Ports = {
  readonly signatures: Signatures;
  readonly certificates: Certificates;
  readonly statusChecker: StatusChecker;
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
  readonly anchors: readonly TrustAnchor[];
  readonly vpToken: Json;
  readonly now: Date;
};

/** More presentations than any wallet sends; each costs two signatures. */
const MAX_PRESENTATIONS = 100;

/** Verifies what a wallet presents, from the bytes to the values that were asked for. */
export class PresentationVerifier {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Refusal `malformed` when the `vp_token` as a whole does not have its form. */
  async verify(task: PresentationsToVerify): Promise<Verdict> {
    const { request, vpToken } = task;
    const query = compileQuery(request.dcqlQuery as unknown as DcqlQuery);
    const presented = [...readVpToken(vpToken, query)].flatMap(([id, texts]) =>
      texts.map((text, index) => ({ id, text, index })),
    );
    if (presented.length > MAX_PRESENTATIONS) throw new Refusal('malformed', 'too many presentations');
    const checked: CheckedPresentation[] = [];
    for (const { id, text, index } of presented) {
      const own = query.credentials.get(id);
      if (own !== undefined) checked.push(await this.#check(task, own, text, index));
    }
    return judge(query, checked, request.transactionData ?? []);
  }

  /** OpenID4VP 1.0 section 8.6: a bad presentation is discarded, the others count. */
  async #check(
    task: PresentationsToVerify,
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
        const { view, anchors } = task;
        await this.#ports.statusChecker.check({ view, reference, chain, issuer, anchors });
      }
      return { ...place, accepted: true, values: valuesOf(query, credential), confirmed };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { reason, message } = error;
      return { ...place, accepted: false, reason, detail: message, poisons: error instanceof NonceRefusal };
    }
  }

  #openSdJwtVc(task: PresentationsToVerify, query: CompiledCredentialQuery, text: string): Verified {
    const checked = checkSdJwtVc(this.#ports, text, expectedOf(task, query));
    return {
      issuer: checked.issuer,
      chain: readCertificateChain(checked.header),
      statusReference: checked.statusReference,
      confirmed: checked.confirmedTransactionData,
      credential: {
        format: 'dc+sd-jwt',
        types: typesOf(checked),
        holderBound: checked.holderKey !== undefined,
        claims: checked.claims,
        alwaysVisible: checked.alwaysVisible,
        authority: authorityOf(checked),
      },
    };
  }

  #openMdoc(task: PresentationsToVerify, query: CompiledCredentialQuery, text: string): Verified {
    const { now, anchors, transcript } = task;
    const [docType = ''] = query.types;
    const checked = checkMdoc(this.#ports, text, {
      now,
      anchors,
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
        authority: authorityOf(checked),
      },
    };
  }
}

/** What both formats come to. */
type Verified = Pick<CheckedMdoc, 'issuer' | 'chain'> & {
  readonly statusReference: StatusReference | undefined;
  readonly confirmed: readonly string[];
  readonly credential: PresentedCredential;
};

function authorityOf({ issuer }: Pick<Verified, 'issuer'>): PresentedCredential['authority'] {
  return { authorityKeyIds: issuer.authorityKeyIds, trustListUris: [], federationEntityIds: [] };
}

/** OpenID4VP 1.0 section 8.4: an entry that names several credentials is confirmed by any one of them. */
function expectedOf(task: PresentationsToVerify, query: CompiledCredentialQuery): ExpectedSdJwtVc {
  const { request, audience, requestedAt, anchors, now } = task;
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
    anchors,
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
