import type { CaseResult } from '../core/case.ts';
import type { Answer, Json } from '../core/http.ts';
import type { DocumentAlteration } from '../targets/mdoc.ts';
import type { FetchedRequest } from '../targets/requests.ts';
import type { CardAlteration } from '../targets/sd-jwt.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';

export const presentsCard = (verifier: Verifier) => verifier.present('dc+sd-jwt');
export const presentsDocument = (verifier: Verifier) => verifier.present('mso_mdoc');

/** Answers a fresh request in some wrong way. */
export const answerWith =
  (answer: (verifier: Verifier, request: FetchedRequest) => Promise<Answer>, format: 'dc+sd-jwt' | 'mso_mdoc' = 'dc+sd-jwt') =>
  async (verifier: Verifier): Promise<CaseResult> => {
    const request = await verifier.ask(format);
    return verifier.mustFail(request, await answer(verifier, request));
  };

/** Answers with an SD-JWT VC that has one defect, and is correct otherwise. */
export const card = (
  alteration: CardAlteration | ((verifier: Verifier, request: FetchedRequest) => CardAlteration | Promise<CardAlteration>),
) =>
  answerWith(async (verifier, request) => {
    const resolvedAlteration = typeof alteration === 'function' ? await alteration(verifier, request) : alteration;
    return verifier.answer(request, { [queryOf(request).id]: [await verifier.card(request, resolvedAlteration)] });
  });

/** Answers with an mdoc that has one defect. */
export const licence = (
  alteration: DocumentAlteration | ((verifier: Verifier, request: FetchedRequest) => DocumentAlteration | Promise<DocumentAlteration>),
) =>
  answerWith(async (verifier, request) => {
    const resolvedAlteration = typeof alteration === 'function' ? await alteration(verifier, request) : alteration;
    return verifier.answer(request, { [queryOf(request).id]: [await verifier.document(request, resolvedAlteration)] });
  }, 'mso_mdoc');

/** Answers with a vp_token that is built from a correct credential. */
export const vpToken = (make: (id: string, text: string) => Json) =>
  answerWith(async (verifier, request) => verifier.answer(request, make(String(queryOf(request).id), await verifier.card(request))));
