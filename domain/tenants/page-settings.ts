import type { z } from 'zod';
import { strictInput } from '../shared/input-object.ts';
import { ContactUri, WebAddress } from '../shared/web-address.ts';
import { Color } from './display.ts';

/** Settings of pages for users, besides name and logo from `display`. */
export const PageSettings = strictInput({
  backgroundColor: Color.optional().describe('Background of the header and of buttons, such as #12355b'),
  textColor: Color.optional().describe(
    'Text colour on that background. Default: black or white. With a contrast below 4.5 to 1 pages use the default colours',
  ),
  privacyUri: WebAddress.optional().describe('Address of your privacy notice. Default: `privacy_policy` of the registration certificate'),
  supportUri: ContactUri.optional().describe('Address of your support. Default: `support_uri` of the registration certificate'),
}).meta({ id: 'PageSettings' });
export type PageSettings = z.infer<typeof PageSettings>;
