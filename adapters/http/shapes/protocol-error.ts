import { z } from 'zod';

/** RFC 6749 section 5.2 and what follows its example. Protocols add members of their own, such as `interval`. */
export const ProtocolError = z
  .looseObject({ error: z.string(), error_description: z.string().optional() })
  .meta({ id: 'ProtocolError' });
