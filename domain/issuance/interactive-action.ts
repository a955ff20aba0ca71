import { z } from 'zod';

const Label = z.string().max(500).optional();

function isWebAddress(text: string): boolean {
  const plain = text.replaceAll('{auth_session}', 'x');
  const url = URL.canParse(plain) ? new URL(plain) : undefined;
  return url !== undefined && ['https:', 'http:'].includes(url.protocol) && url.username === '';
}

/** What the wallet's user does before a credential is issued, one after the other. */
export const InteractiveAction = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('openid4vp_presentation'),
      label: Label,
      presentationConfigId: z.string().min(1).max(128),
    }),
    z.strictObject({
      type: z.literal('redirect_to_web'),
      label: Label,
      url: z
        .string()
        .max(2048)
        .refine(isWebAddress, 'an http or https address; {auth_session} in it is replaced'),
      callbackUrl: z.string().max(2048).refine(isWebAddress, 'an http or https address').optional(),
      description: z.string().max(1000).optional(),
    }),
  ])
  .meta({ id: 'InteractiveAction' });
export type InteractiveAction = z.infer<typeof InteractiveAction>;
