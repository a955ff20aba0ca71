import { z } from 'zod';
import { PAGE_PATTERN } from '../shared/address-patterns.ts';
import { Reference } from '../shared/bounds.ts';
import { isUri, normalUri, withPlaceholder } from '../shared/uri.ts';
import { isWebAddress, WebAddress } from '../shared/web-address.ts';

const Label = z.string().max(500).optional().describe('Label for the administrator; not visible to wallets');

const isPage = (text: string) => isUri(text) && isWebAddress(text);

/** A step of the wallet's user before a credential is issued. */
export const InteractiveAction = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('openid4vp_presentation').describe('The wallet presents credentials first'),
      label: Label,
      presentationConfigId: Reference.describe(
        'Id of a presentation configuration. The verified claims are sent to its `webhook`, and to the claims webhook as ' +
          '`credentials`',
      ),
    }),
    z.strictObject({
      type: z.literal('redirect_to_web').describe('The user visits your page first'),
      label: Label,
      url: z
        .string()
        .overwrite((text) => withPlaceholder('{auth_session}', text, normalUri))
        .max(2048)
        .refine(
          (text) => isPage(text.replaceAll('{auth_session}', 'x')),
          'an http or https address without credentials and control characters; {auth_session} in it is replaced',
        )
        .meta({ pattern: PAGE_PATTERN })
        .describe(
          'The page that the user visits. {auth_session} is replaced by the id of this visit. The query parameter return_to is ' +
            'appended: the address to which the page redirects the browser at the end, with &error=access_denied if the user cancelled.',
        ),
      callbackUrl: WebAddress.optional().describe(
        'Called with POST of {session, auth_session} to confirm that the user of this visit has completed the page, before ' +
          'anything is issued. Any 2xx with JSON or without a body confirms it; otherwise the wallet is denied. Without ' +
          'it the return of the browser is trusted, which every user can forge, so the page is then only informative.',
      ),
      description: z.string().max(1000).optional().describe('For the administrator'),
    }),
  ])
  .meta({ id: 'InteractiveAction' });
export type InteractiveAction = z.infer<typeof InteractiveAction>;
