import type { Seen } from '../core/case.ts';
import type { Answer, Json } from '../core/http.ts';
import type { DocumentBend } from '../targets/mdoc.ts';
import type { Asked } from '../targets/requests.ts';
import type { CardBend } from '../targets/sd-jwt.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';

export const presentsCard = (verifier: Verifier) => verifier.present('dc+sd-jwt');
export const presentsDocument = (verifier: Verifier) => verifier.present('mso_mdoc');

/** A fresh request for a card, answered in some wrong way. */
export const answered =
  (answer: (verifier: Verifier, asked: Asked) => Promise<Answer>, format: 'dc+sd-jwt' | 'mso_mdoc' = 'dc+sd-jwt') =>
  async (verifier: Verifier): Promise<Seen> => {
    const asked = await verifier.ask(format);
    return verifier.mustFail(asked, await answer(verifier, asked));
  };

/** A card that is bent in one way, in an answer that is right otherwise. */
export const card = (bend: CardBend | ((verifier: Verifier, asked: Asked) => CardBend | Promise<CardBend>)) =>
  answered(async (verifier, asked) => {
    const bent = typeof bend === 'function' ? await bend(verifier, asked) : bend;
    return verifier.answer(asked, { [queryOf(asked).id]: [await verifier.card(asked, bent)] });
  });

/** The same with an mdoc. */
export const licence = (bend: DocumentBend | ((verifier: Verifier, asked: Asked) => DocumentBend | Promise<DocumentBend>)) =>
  answered(async (verifier, asked) => {
    const bent = typeof bend === 'function' ? await bend(verifier, asked) : bend;
    return verifier.answer(asked, { [queryOf(asked).id]: [await verifier.document(asked, bent)] });
  }, 'mso_mdoc');

/** An answer whose vp_token is made of a right card. */
export const vpToken = (make: (id: string, text: string) => Json) =>
  answered(async (verifier, asked) => verifier.answer(asked, make(String(queryOf(asked).id), await verifier.card(asked))));
