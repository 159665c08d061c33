/** The same as a default export. */
import { type Mail, resize, sendEmail, tick } from './handlers.js';

export default {
  'send-email': sendEmail,
  tick,
  resize,
  note: (_payload: { text: string } | undefined) => {},
};

export type { Mail };
