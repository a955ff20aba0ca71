import type { z } from 'zod';
import { strictInput } from '../shared/input-object.ts';
import { ContactUri, WebAddress } from '../shared/web-address.ts';
import { Color } from './display.ts';

/** Settings of pages for users, besides name and logo from `display`. */
export const PageSettings = strictInput({
  backgroundColor: Color.optional().describe('Of the header and of buttons, such as #12355b'),
  textColor: Color.optional().describe('On it; black or white unless stated. With a contrast below 4.5 to 1 pages take their own colours'),
  privacyUri: WebAddress.optional().describe('Of your privacy notice; `privacy_policy` of the registration certificate unless stated'),
  supportUri: ContactUri.optional().describe('Where users get help; `support_uri` of the registration certificate unless stated'),
}).meta({ id: 'PageSettings' });
export type PageSettings = z.infer<typeof PageSettings>;
