"""Files of other programs: networks in the BIF format."""
