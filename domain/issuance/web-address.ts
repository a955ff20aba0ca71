import { z } from 'zod';

export const WebAddress = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && ['https:', 'http:'].includes(url.protocol) && url.username === '';
  }, 'an http or https address without credentials');
