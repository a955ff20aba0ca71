import { z } from 'zod';

/** What a delete answers. */
export const DeletedView = z
  .object({ id: z.string() })
  .meta({ id: 'Deleted', description: 'The id of what was deleted' });
