import { z } from 'zod';
import { ShowOfferPage } from '../../../application/offer-pages/show-offer-page.ts';
import { offerPage } from '../pages/offer-page.ts';
import { pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { family, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';

/** `pageUrl` of a response, for backends without a page of their own for the QR code. */
export const PageUrl = z
  .string()
  .optional()
  .describe(
    'A page for the user, with the QR code, the link and the offered or requested data; see docs/reference/pages-for-users.md. Like the link, it lets any holder ' +
      'accept the offer. Absent with dc-api, and with `requireResponseCode: true`',
  );

export const offerPageRoutes = family({ showOfferPage: ShowOfferPage }, ({ showOfferPage }) => [
  route({
    tag: 'Pages for users',
    surface: 'page',
    access: 'public',
    rateLimit: { group: 'nonce', perAddress: true },
    method: 'get',
    path: '/:tenant/offer/:pageId',
    operationId: 'showOfferPage',
    exampleParameters: { lang: 'de' },
    summary: 'Show an offer or a request to the user, who opens it with a wallet',
    description:
      'The page of `pageUrl` in the responses of `POST /issuer/offer` and `POST /verifier/offer`. In the language of the browser, or ' +
      'that of the parameter `lang`. A visit changes nothing, and does not mark the session as fetched.',
    params: TenantPath.extend({ pageId: z.string().max(128) }),
    query: z.object({ lang: z.string().max(64).optional().describe('A language tag, such as de') }),
    responses: { 200: 'A page', 404: 'No such page', 410: 'A page that says that it was used, has expired or was cancelled' },
    async handle({ params: { tenant, pageId }, request }) {
      const offer = await showOfferPage.execute(tenant, pageId);
      const answer = await offerPage(offer, readerOf(request, offer.look));
      return pageReply(answer, {}, offer.status === 'open' ? 200 : 410);
    },
  }),
]);
